"""From trace files to tables: readers, repairs that are counted, and the DuckDB store.

Read `README.md` in this folder for the tour. Nothing here imports `replay` or `whatif`.
"""
