"""Text with lone surrogates or NUL, which UTF-8, RE2 and some databases do not take, and numbers
that MongoDB does not take.

JSON may carry lone surrogates, and Python spells file names with them that are not UTF-8 (PEP 383).
"""

import re
import sys
from typing import Any

LARGEST = int(sys.float_info.max)
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def has_surrogates(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def is_storable(text: str) -> bool:
    """Every database can store the text: it has no lone surrogate and no NUL."""
    return not _UNSTORABLE.search(text)


def storable(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate and NUL."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable_parts(value: Any) -> Any:
    """The value with the texts in its lists and dicts made `storable`, and with integers of more
    than 64 bits as floats, at most the largest, as most readers of JSON take them."""
    match value:
        case int() if not -(2**63) <= value < 2**63:
            return float(max(-LARGEST, min(LARGEST, value)))
        case str():
            return storable(value)
        case dict():
            return {storable_parts(key): storable_parts(item) for key, item in value.items()}
        case list() | tuple():
            return [storable_parts(item) for item in value]
        case _:
            return value


def encodable(text: str) -> str:
    """The text with `?` in place of each lone surrogate."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def escaped(text: str) -> str:
    """The text with lone surrogates written as escapes, such as `\\udcff`."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def joined(text: str) -> str:
    """The text with the halves of surrogate pairs joined, and U+FFFD in place of lone ones."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
