"""Rows of `whatif.models.volumes`: the collectives of each axis, in closed form.

`volume.py` says what a row is; `tensor.py`, `context.py`, `experts.py` have those inside a replica,
`state.py` those of gradients and parameters over replicas.
"""
