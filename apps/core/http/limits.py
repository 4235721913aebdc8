"""Limits on the data of other servers, and cutting text to them."""

import json
from collections.abc import Iterable
from typing import Any

from apps.core.errors import Unavailable

# Bytes of one event of a model server; and of a whole reply of a model server, an embedding server
# or a list of models.
MAX_FRAME_BYTES = 1_000_000
MAX_REPLY_BYTES = 64_000_000


def past(limit: str) -> Unavailable:
    """Return the error of an answer that exceeded a limit, which completes "the limit of"."""
    message = f"The answer was ended because it went past the limit of {limit}."
    return Unavailable(message, code="PROVIDER_ERROR", retryable=True)


def size(text: str) -> int:
    """Return the length of a text in UTF-8, in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut(text: str, limit: int) -> str:
    """Return the start of a text, at most `limit` bytes of UTF-8, in whole characters."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def json_size(value: Any) -> int:
    """Return the size of a JSON value in bytes. It must not be deep (`is_deep`)."""
    return size(json.dumps(value, ensure_ascii=False, default=str))


# Code that walks a value recurses once per level. No server needs as many levels.
MAX_DEPTH = 64


def is_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Whether a JSON value has more than `most` nested levels of lists and objects."""
    level = [value]
    for _ in range(most + 1):
        level = [parent for parent in level if isinstance(parent, dict | list)]
        if not level:
            return False
        level = [child for parent in level for child in _children(parent)]
    return True


def _children(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


# Entries of a list of models.
MAX_MODELS = 1_000
# Characters of a model id, a tool name or a call id.
MAX_NAME = 200


def is_name(text: object) -> bool:
    """Whether this can be a model id: a printable string of at most MAX_NAME characters."""
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME and text.isprintable()


def label(text: str) -> str:
    """Return a text of a server for display: one line, at most MAX_NAME characters."""
    short = text[:MAX_NAME]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)


class Budget:
    """Counts the bytes of one kind of text of an answer, up to a limit."""

    # Each event costs memory, so it counts as at least one token.
    MIN_BYTES = 4

    def __init__(self, most: int, what: str) -> None:
        self._limit = f"{most} bytes of {what}"
        self._left = most

    def take(self, text: str) -> str:
        """Return the text, cut to the rest of the limit. After a cut, `check` raises."""
        needed = max(size(text), self.MIN_BYTES)
        left, self._left = self._left, self._left - needed
        return text if needed <= left else cut(text, max(left, 0))

    def check(self) -> None:
        """Raise Unavailable PROVIDER_ERROR, with the name of the limit, if it is exceeded."""
        if self._left < 0:
            raise past(self._limit)
