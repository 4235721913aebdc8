"""An index that each test has for itself."""

from tests.support.index import index, wire_ends

__all__ = ["index", "wire_ends"]
