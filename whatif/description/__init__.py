"""What a run is: its model, its degrees, its micro-batches, told from a task graph.

`labels.py` says of every task where it belongs; `described.py` holds the finding with its
evidence; `infer.py` finds it; `file.py` lets people overrule it.
"""
