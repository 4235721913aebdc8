"""Which addresses are open to every user; all others are for staff.

Each app marks its own in its urls.py. This matters only where credentials are required
(`access.requires_credentials`): elsewhere everyone counts as staff. `tests/core/test_rights.py`
lists every route of the product with what it answers to whom.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from django.urls.resolvers import URLPattern

ATTRIBUTE = "methods_for_users"
ALL_METHODS = ("*",)


def for_users(
    patterns: Sequence[URLPattern], methods: Collection[str] = ALL_METHODS
) -> list[URLPattern]:
    """Open `patterns` to every user who is logged in, for all methods or for those named."""
    for pattern in patterns:
        setattr(pattern.callback, ATTRIBUTE, methods)
    return list(patterns)


def is_for_users(view: Callable[..., Any], method: str) -> bool:
    """Return True if a user who is not staff may send `method` to `view`."""
    methods = getattr(view, ATTRIBUTE, ())
    return methods == ALL_METHODS or method in methods
