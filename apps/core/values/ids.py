"""Ids that are in order of time, so that new rows are beside each other in an index."""

from secrets import randbits
from time import time_ns
from uuid import UUID

_NS_PER_MS, _FRACTIONS = 1_000_000, 1 << 12


def uuid7() -> UUID:
    """Return a new id: milliseconds since 1970, a fraction of one, and 62 random bits (RFC 9562,
    5.7 and 6.2, method 3)."""
    milliseconds, rest = divmod(time_ns(), _NS_PER_MS)
    fraction = rest * _FRACTIONS // _NS_PER_MS
    return UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | randbits(62))
