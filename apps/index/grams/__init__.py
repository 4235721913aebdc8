"""The n-gram index: which texts may match a pattern, so that Grep reads few of them."""

from apps.index.grams.expressions import MANY, line_breaks_of, literals_of, required_by
from apps.index.grams.required import ANY, Required
from apps.index.grams.segments import Segment
from apps.index.grams.store import GramStore, GramWriter, get_grams, reset_grams

__all__ = [
    "ANY",
    "MANY",
    "GramStore",
    "GramWriter",
    "Required",
    "Segment",
    "get_grams",
    "line_breaks_of",
    "literals_of",
    "required_by",
    "reset_grams",
]
