"""Pipelines: which micro-batch a stage runs when, how long it stands idle, what it holds.

`terms.py` says what a pipeline and a turn are; `orders.py` has the turns of each schedule, in the
order of a stage; `costs.py` closed forms of what it idles and holds; `partition.py` its layers.
Orders: GPipe (arXiv:1811.06965), 1F1B and interleaved 1F1B (Megatron-LM, arXiv:2104.04473), ZB-H1
(arXiv:2401.10241), DualPipe (arXiv:2412.19437).
"""
