"""Timelines of a run on a schedule: the tracks and arrows of a Chrome trace.

`rows` are the recorded rows, `told` is what a version of the run says of its tasks. From them
`host`, `device` and `run` make the slices of tracks, and `arrows` what ties these; `events` writes
them as text. `moved` finds where rows of a thread lie when its tasks have moved.
"""
