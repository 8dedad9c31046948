"""What the parts of a transformer compute, move and hold, by formula.

`dims.py` the widths that a rank has of a divided model; `works.py` the work of each part and
direction, as rows (`maker.py` makes them); `parameters.py` what is held. All of it needs a model
whose sizes are known (`dims.is_known`).
"""
