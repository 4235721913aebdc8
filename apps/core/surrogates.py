"""Escapes lone surrogates, which UTF-8, and so RE2, does not have."""


def escaped(text: str) -> str:
    """Return the text with lone surrogates as escapes, such as `\\udcff`."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
