"""One HTML page out of blocks: templates, style and script that all pages share.

A page is a single file that asks the network for nothing, is read without scripts, and prints.
`environment.py` is the only door to jinja2; everything is escaped there and in the charts.
"""
