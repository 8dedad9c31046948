"""Trace files -> columns of one file; each reader knows one format."""
