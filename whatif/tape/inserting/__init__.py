"""How collectives come into a tape.

`rows.py` says where, `tasks.py` as which tasks, `edges.py` what each waits for.
"""
