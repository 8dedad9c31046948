"""Collectives of another layout, axis by axis.

`axes.py` says which recorded collectives are of which axis and what becomes of each; `resize.py`
gives those that stay their new members and sizes; `wrapping.py` takes away what frameworks work
beside those that go; `units.py` finds where others come in; `inside.py` makes those inside a
replica, `state.py` those of gradients and parameters, whose number `accumulated.py` counts where
the model's sizes do not tell it; `links.py` says over which links and how long.
"""
