"""What a change affects: definitions, their callers, importers, tests, and files that used to
change with them."""

from apps.lookup.impact.impact import impact
from apps.lookup.impact.query import ImpactQuery

__all__ = ["ImpactQuery", "impact"]
