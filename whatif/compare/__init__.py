"""Two runs beside each other: where every nanosecond of their steps goes, what accounts for the
difference, and how good a prediction was. Pure functions of two runs that were read and replayed.

`account` shares out the steps of one run, `match` finds what is the same in both, `diff` compares,
`verify` holds a run against a prediction, `contract` is what both answer, `text`, `markdown` and
`blocks` show it.
"""
