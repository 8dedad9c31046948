"""What `replay.api` offers, by subject; below it, so that the door itself stays a list.

`window` says which run and which part of it, `stored` reads it and opens its tables. On these
stand `answered` (one scenario), `replayed` and `questions` (many what-ifs of one reading),
`compared`, `exported` and `reported`.
"""
