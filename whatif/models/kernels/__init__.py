"""Time of kernels: on another accelerator, in another precision, of other sizes.

`machine.py` has the numbers of one accelerator, `shares.py` and `shares.yaml` the part of its peaks
that kernels reach. `roofline.py` is the model of another device or type, as a ratio to what was
measured. `products.py`, `attention.py` and `moved.py` tell a time by the sizes of the work;
`works.py` that of rows of work (`models.transformer`).
"""
