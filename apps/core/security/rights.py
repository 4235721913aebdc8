"""Marks the routes that are open to all users. All others are for staff.

Each app marks its routes in its urls.py. This has an effect only if credentials are required
(`authentication.requires_credentials`); otherwise everyone counts as staff. A test lists every
route and who may use it (tests/core/test_rights.py).
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from django.urls.resolvers import URLPattern

ATTRIBUTE = "methods_for_users"
ALL_METHODS = ("*",)


def for_users(
    patterns: Sequence[URLPattern], methods: Collection[str] = ALL_METHODS
) -> list[URLPattern]:
    """Open `patterns` to all users who are logged in, for all methods or only `methods`."""
    for pattern in patterns:
        setattr(pattern.callback, ATTRIBUTE, methods)
    return list(patterns)


def is_for_users(view: Callable[..., Any], method: str) -> bool:
    """Return True if users who are not staff may send `method` to `view`."""
    methods = getattr(view, ATTRIBUTE, ())
    return methods == ALL_METHODS or method in methods
