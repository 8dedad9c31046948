"""Store -> columnar task graph: what depends on what, with the evidence for each edge."""
