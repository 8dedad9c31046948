"""Conclusions of a report, one rule a file: each looks at the material and finds one thing, or not.

A rule reports what a replay says would save more than noise, and names its thresholds with the
reason for each. `rules.py` lists them, `saving.py` makes a finding of a what-if.
"""
