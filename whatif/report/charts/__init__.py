"""Charts as SVG, drawn from blocks of data: one file a kind, `draw.py` knows them all.

No scripts, no plotting library, no fonts: a chart is text in the page, takes its colours from the
page's variables (light, dark, print), and keeps letters at 12 px on any width: places along x are
per cent of the width, only places along y are pixels.
"""
