"""Schedule -> step time, breakdown, critical path, trust."""
