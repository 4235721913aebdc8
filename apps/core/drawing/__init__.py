"""Pictures as numbers: where boxes, tiles and columns are. Templates write them as SVG.

Lengths are in CSS pixels, and whole: SVG gets attributes rather than styles, which pages forbid.
"""

from apps.core.drawing.layered import Box, Layout, fitting, label_width, layered
from apps.core.drawing.sizes import Chart, Span, chart, spans, treemap

__all__ = [
    "Box",
    "Chart",
    "Layout",
    "Span",
    "chart",
    "fitting",
    "label_width",
    "layered",
    "spans",
    "treemap",
]
