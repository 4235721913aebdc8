"""Clean text from servers: split surrogate pairs, lone surrogates and NUL characters."""

from typing import Any

from apps.core.values.surrogates import joined


class Characters:
    """Joins surrogate pairs that are split between two fragments of a stream."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Return the clean text; buffers a high surrogate at the end."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean(text)


def clean(text: str) -> str:
    """Return text that UTF-8 and every database can store: no lone surrogates, no NUL."""
    return joined(text).replace("\x00", "")


def clean_json(value: Any) -> Any:
    """Clean every string of a JSON value. Recursive: check `limits.is_deep` first."""
    match value:
        case str():
            return clean(value)
        case list():
            return [clean_json(item) for item in value]
        case dict():
            return {clean(key): clean_json(item) for key, item in value.items()}
        case _:
            return value
