"""Collectives of another layout, axis by axis.

`axes.py` says which recorded collectives are of which axis and what becomes of each; `resize.py`
gives those that stay their new members and sizes; `units.py` and `anchors.py` find where others
come in; `inside.py` makes those inside a replica, `state.py` those of gradients and parameters;
`links.py` says over which links and how long.
"""
