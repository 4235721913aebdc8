"""Imports libraries without the optional packages that they would import and nothing here uses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*modules: str) -> Iterator[None]:
    """Until the block ends, these modules seem not to be installed, unless they are imported."""
    hidden = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
