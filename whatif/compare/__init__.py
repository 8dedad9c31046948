"""Two runs beside each other: what accounts for their difference, and how good a prediction was.

Pure functions of runs that were read and replayed. `account` shares out every nanosecond of the
steps of one run, `match` finds what is the same in both, `diff` compares, `verify` holds a run
against a prediction, `contract` is what `diff` answers, `text`, `markdown` and `blocks` show it.
"""
