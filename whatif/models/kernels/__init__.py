"""Time of a kernel on another accelerator or in another precision, as a ratio to what was measured.

`machine.py` has the numbers of one accelerator, `shares.py` and `shares.yaml` the part of its peaks
that kernels reach, `roofline.py` the model.
"""
