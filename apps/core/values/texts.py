"""Texts that people give, and those that they read."""

from apps.core.errors import InvalidInput
from apps.core.values.surrogates import is_storable


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 file`, `2,000 files` or, with `many`, `2 repositories`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def check_text(what: str, text: str, most: int) -> None:
    """Raise InvalidInput about `what` if a text is blank, too long, or cannot be stored."""
    if not text.strip():
        raise InvalidInput(f"{what} must not be blank.")
    if len(text) > most:
        raise InvalidInput(f"{what} has at most {most:,} characters.")
    if not is_storable(text):
        raise InvalidInput(f"{what} holds characters that cannot be stored.")
