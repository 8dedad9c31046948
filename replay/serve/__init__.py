"""The interactive what-if page: one run in memory, asked over HTTP from this machine.

`session` answers what-ifs of the run, `knobs` tells which of them can do something for it,
`contract` has what is said in JSON, `server` listens, `document` puts the page together from the
files in `page/`. Nothing here reads or writes files of the run once it is open.
"""
