"""The post-mortem report of a run: what was found, why it is so, and what would help.

`material.py` is what sections are written from, `contract.py` what they write (the JSON report),
`sections/` has one file a section, `build.py` their order; `findings.py` draws conclusions,
`render/` makes one HTML page or Markdown of it.
"""
