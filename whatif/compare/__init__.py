"""Two runs beside each other: what accounts for their difference, and how good a prediction was.

Pure functions of runs that were read and replayed. `account` shares out every nanosecond of the
steps of one run (`pieces` are its columns, `waited` walks back through idle time, `sums` adds up
to `leaves`), `match` finds what is the same in both, `diff` compares, `comparability` says how far
that is possible, `verify` holds a run against a prediction. `contract` is what `diff` answers;
`text`, `markdown`, `blocks` and `page` show it.
"""
