"""The n-gram index: which texts may match a pattern, so that Grep reads few of them."""

from apps.index.grams.expressions import MANY, line_breaks_of, literals_of, required_by
from apps.index.grams.required import ANY, Required, grams_of, normalized
from apps.index.grams.segments import Segment
from apps.index.grams.store import GramStore, GramWriter, get_grams, reset_grams
from apps.index.grams.strings import Having, having

__all__ = [
    "ANY",
    "MANY",
    "GramStore",
    "GramWriter",
    "Having",
    "Required",
    "Segment",
    "get_grams",
    "grams_of",
    "having",
    "line_breaks_of",
    "literals_of",
    "normalized",
    "required_by",
    "reset_grams",
]
