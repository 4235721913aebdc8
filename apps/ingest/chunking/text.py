"""What counts as a line. Chunks, citations and the source viewer all number lines by this."""

import codecs

# UTF-32 first: its little-endian mark begins with that of UTF-16.
ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> str:
    """The text of a file: by its byte order mark, which is dropped, else UTF-8.

    What cannot be decoded becomes U+FFFD, and so does NUL, which no database keeps in a text.
    """
    for mark, encoding in ENCODINGS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            break
    else:
        text = data.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")


def lines_of(text: str) -> list[str]:
    """The lines of a text: ended by "\\n" alone, a "\\r" before it dropped.

    The end of the last line begins no further one: "a\\n" is one line, "" none.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
