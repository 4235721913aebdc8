"""Text from servers that cut and mangle it: whole characters, and none that cannot be kept."""

from typing import Any

from apps.core.surrogates import joined


class Characters:
    """Whole characters from pieces that may end in half of one (a lone UTF-16 surrogate)."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean(text)


def clean(text: str) -> str:
    """Text that UTF-8 and every database can hold: surrogates joined or replaced, no NUL."""
    return joined(text).replace("\x00", "")


def cleaned(value: Any) -> Any:
    """A JSON value with every text of it clean; not a deep one (`apps.core.limits.is_deep`)."""
    match value:
        case str():
            return clean(value)
        case list():
            return [cleaned(item) for item in value]
        case dict():
            return {clean(key): cleaned(item) for key, item in value.items()}
        case _:
            return value
