"""A run cut into segments, and runs put together from them.

A segment is what one rank does for one part of the model in one direction, for one micro-batch of
one step: host work and device work. `cut.py` makes them from a graph and its labels; a `Program`
says which segments a new rank runs, in which order; `assemble.py` makes a task graph of programs.
"""
