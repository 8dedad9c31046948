"""A training run that was never recorded, from its shape: the trace that a profiler would write.

`document.py` reads what is wanted; `machine.py` the accelerator and its links; `operators.py` says
what each part of the model launches, `exchanges.py` what its ranks exchange; `stage.py` puts a
step of one pipeline stage together as a script, `play.py` plays scripts on streams, `kineto.py`
writes what was played; `calibrate.py` brings the step to a measured time; `make.py` is the door.
"""
