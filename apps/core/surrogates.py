"""Text for RE2, which reads UTF-8 and so takes no lone surrogates."""


def escaped(text: str) -> str:
    """The text with lone surrogates spelled as escapes, such as `\\udcff`; others come seldom."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
