"""What a collective costs: latency of its steps and bytes over the links that it crosses.

`calls.py` has the columns that describe calls; `model.py` the times and the scaling of measured
ones; `curves.py` what the calls of a trace measured themselves. The links are `fabric.Fabric`.
"""
