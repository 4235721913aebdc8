"""The n-gram index: which texts may match a pattern, so that Grep reads few of them."""

from apps.index.grams.expressions import MANY, line_breaks_of, literals_of, required_by
from apps.index.grams.required import ANY, Required, grams_of, normalized
from apps.index.grams.segments import Segment, Strings
from apps.index.grams.store import GramStore, GramWriter, get_grams, reset_grams

__all__ = [
    "ANY",
    "MANY",
    "GramStore",
    "GramWriter",
    "Required",
    "Segment",
    "Strings",
    "get_grams",
    "grams_of",
    "line_breaks_of",
    "literals_of",
    "normalized",
    "required_by",
    "reset_grams",
]
