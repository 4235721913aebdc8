"""Pictures as numbers: where boxes, tiles and columns are. Templates write them as SVG.

Lengths are in CSS pixels, and whole: SVG gets attributes rather than styles, which pages forbid.
"""
