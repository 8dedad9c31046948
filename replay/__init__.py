"""From tables to a schedule and back to people: graph, engine, results, command line.

Read `README.md` in this folder for the tour. This module imports nothing, so that
`whatif` can use `replay.graph` without waking the command line.
"""
