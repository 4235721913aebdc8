"""The text that an embedder gets for a chunk, and splitting chunks that are too long for it.

Servers silently truncate texts that are too long. So a chunk that may be too long is split, and no
text is lost. The tokeniser of a server is unknown, so tokens are estimated from above: a token for
2.5 ASCII letters, for each other ASCII character, and for each byte of other characters.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from apps.code.values import Chunk
from apps.embedding.types import EmbeddingText

_PIECE = re.compile(r"[A-Za-z]+|[ \t]+|[\x00-\x7f]|[^\x00-\x7f]")
# Characters of a part. Splitting must go on even if the header takes all tokens.
_MIN_PART = 8


def embedding_text(path: str, chunk: Chunk) -> EmbeddingText:
    """The fields of a chunk. Path and declared names matter: without them search is much worse."""
    return EmbeddingText(
        body=chunk.text,
        path=path,
        symbol=" ".join(part for part in (chunk.symbol, *chunk.names) if part),
        signature=chunk.signature,
    )


def estimate_tokens(text: str) -> int:
    """An upper estimate of the tokens that common tokenisers make of `text`."""
    return sum(map(_tokens, _PIECE.findall(text)))


def _tokens(piece: str) -> int:
    if not piece.isascii():
        return len(piece.encode("utf-8", "replace"))
    return -(-len(piece) * 2 // 5) if piece[0].isalpha() else 1


def split_to_fit(path: str, chunk: Chunk, max_tokens: int | None) -> list[Chunk]:
    """Split a chunk into pieces of whole lines of at most `max_tokens`, header included.

    A chunk that fits is returned alone.

    A line that is too long is split too; its parts have its line number. The joined texts of the
    pieces are the text of the chunk, without blank pieces.
    """
    if max_tokens is None:
        return [chunk]
    header = replace(embedding_text(path, chunk), body="").joined()
    body_tokens = max_tokens - estimate_tokens(header)
    if estimate_tokens(chunk.text) <= body_tokens:
        return [chunk]
    return [piece for piece in _pieces(chunk, body_tokens) if piece.text.strip()]


def _pieces(chunk: Chunk, max_tokens: int) -> Iterator[Chunk]:
    """As many whole lines as fit in each piece, greedily."""
    start = at = used = 0  # of the piece, of the line: characters; tokens of the piece
    first = number = chunk.start_line
    for number, line in enumerate(chunk.text.split("\n"), chunk.start_line):
        tokens = estimate_tokens(line) + 1  # the newline
        if at > start and used + tokens > max_tokens:
            yield _piece(chunk, start, at - 1, first, number - 1)
            start, first, used = at, number, 0
        end = at + len(line)
        if tokens > max_tokens:
            for part in _parts(line, max_tokens):
                yield _piece(chunk, at, at + len(part), number, number)
                at += len(part)
            start, first = end + 1, number + 1
        else:
            used += tokens
        at = end + 1
    if at > start:
        yield _piece(chunk, start, at - 1, first, number)


def _piece(chunk: Chunk, start: int, end: int, first: int, last: int) -> Chunk:
    text, offset = chunk.text[start:end], chunk.offset + start
    return replace(chunk, text=text, offset=offset, start_line=first, end_line=last)


def _parts(line: str, max_tokens: int) -> Iterator[str]:
    """A line, split between any characters."""
    while line:
        part = head(line, max_tokens)
        yield part
        line = line[len(part) :]


def head(text: str, max_tokens: int) -> str:
    """The longest prefix of `text` that fits, but at least _MIN_PART characters."""
    used = end = 0
    for match in _PIECE.finditer(text):
        used += _tokens(match.group())
        if used > max_tokens:
            break
        end = match.end()
    return text[: max(end, _MIN_PART)]
