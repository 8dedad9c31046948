"""A run cut into segments, and runs put together from them.

A segment is what one rank does for one part of the model in one direction, for one micro-batch of
one step: host work and device work (`segments.py`). `cut.py` makes them from a graph and its
labels; a `Program` says which segments a new rank runs, in which order; `assemble.py` makes a task
graph of programs:
- `reel.py` is the recording with all that is asked of it, `instances.py` which new task is a copy
  of which, `lanes.py` where each runs, `copies.py` its columns;
- `carried.py` brings edges of the recording over, from where `counterparts.py` finds what stands
  for their source; `turns.py` has threads take turns, `meetings.py` members of collectives meet;
- `messages.py` makes sends and receives between stages, `posting.py` what they wait for;
- `closing.py` ends the steps; `spans.py` and `lags.py` count and measure for all of these.
`insert.py` puts collectives into a tape and takes them out (`inserting/`, `splice.py`).
"""
