"""The limits on what foreign servers send: how they are named, and how text is cut to them."""

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from apps.core.config import Config, config
from apps.core.errors import Unavailable

_VARIABLES = {item.name: str(item.metadata["env"]) for item in fields(Config)}


def named(field: str) -> str:
    """A limit as people read of it: `CODEINFO_MAX_FRAME_BYTES (1000000)`."""
    value = getattr(config(), field)
    shown = f"{value:g}" if isinstance(value, float) else value
    return f"{_VARIABLES[field]} ({shown})"


def past(field: str) -> Unavailable:
    """The failure of an answer that went past this limit."""
    message = f"The answer was ended because it went past the limit {named(field)}."
    return Unavailable(message, code="PROVIDER_ERROR", retryable=True)


def size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut(text: str, limit: int) -> str:
    """The beginning of a text, at most `limit` bytes, without half a character at its end."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def json_size(value: Any) -> int:
    """Bytes of a JSON value that is not deep."""
    return size(json.dumps(value, ensure_ascii=False, default=str))


# What reads, writes or shows a value goes one call deeper with each level; nothing that a server
# has to say needs as many.
MAX_DEPTH = 64


def is_deep(value: Any) -> bool:
    """Whether lists and objects are nested in a JSON value more than MAX_DEPTH levels deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


# Of a list of models; what a page offers and a person looks through is shorter.
MAX_MODELS = 1_000
# Letters of a model's id, of a tool's name, of the id of a call.
MAX_NAME = 200


def is_name(text: object) -> bool:
    """Whether this can name a model: a text that is not too long to store, show and send back."""
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME and text.isprintable()


def label(text: str) -> str:
    """A text of a server as pages show it: on one line, and not too long."""
    short = text[:MAX_NAME]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)


class Budget:
    """The bytes of one kind of text that an answer may still have."""

    # An event costs memory however short its text is, so each counts as one token at least.
    LEAST = 4

    def __init__(self, field: str) -> None:
        self.field = field
        self._left: int = getattr(config(), field)

    def take(self, text: str) -> str:
        """The text, or as much of it as fits; `check` raises then."""
        wanted = max(size(text), self.LEAST)
        left, self._left = self._left, self._left - wanted
        return text if wanted <= left else cut(text, max(left, 0))

    def check(self) -> None:
        """Raises Unavailable (PROVIDER_ERROR), naming the limit, once more came than fits."""
        if self._left < 0:
            raise past(self.field)
