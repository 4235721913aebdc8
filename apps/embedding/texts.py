"""What an embedder is given of a chunk, and making chunks fit one that takes so many tokens.

Servers cut what is too long without a word, so nothing longer is sent: a chunk that may not fit
becomes several, and no text is lost. The count is an upper estimate, since a server's tokeniser is
not known here: 2.5 letters a token, every digit and mark one, every byte beyond ASCII one.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from apps.code.values import Chunk
from apps.embedding.types import EmbeddingText

_PIECE = re.compile(r"[A-Za-z]+|[ \t]+|[\x00-\x7f]|[^\x00-\x7f]")
_SHORTEST_PART = 8  # characters: a header that leaves less room must not stop the cutting


def embedding_text(path: str, chunk: Chunk) -> EmbeddingText:
    """The fields of a chunk. Path and declared names weigh much: a search without them is poor."""
    return EmbeddingText(
        body=chunk.text,
        path=path,
        symbol=" ".join(part for part in (chunk.symbol, *chunk.names) if part),
        signature=chunk.signature,
    )


def estimate_tokens(text: str) -> int:
    """No fewer tokens, as a rule, than any common tokeniser makes of `text`."""
    return sum(map(_tokens, _PIECE.findall(text)))


def _tokens(piece: str) -> int:
    if not piece.isascii():
        return len(piece.encode("utf-8", "replace"))
    return -(-len(piece) * 2 // 5) if piece[0].isalpha() else 1


def split_to_fit(path: str, chunk: Chunk, max_tokens: int | None) -> list[Chunk]:
    """`chunk` as pieces of whole lines that each fit with their header; itself when it fits.

    A line that is too long alone is cut into parts that carry its number. Joining the pieces'
    texts (by newlines between lines) gives the chunk's text again, less blank pieces.
    """
    if max_tokens is None:
        return [chunk]
    header = replace(embedding_text(path, chunk), body="").joined()
    room = max_tokens - estimate_tokens(header)
    if estimate_tokens(chunk.text) <= room:
        return [chunk]
    return [piece for piece in _pieces(chunk, room) if piece.text.strip()]


def _pieces(chunk: Chunk, room: int) -> Iterator[Chunk]:
    """Lines gathered while they fit."""
    lines: list[str] = []
    used = 0
    for number, line in enumerate(chunk.text.split("\n"), chunk.start_line):
        cost = estimate_tokens(line) + 1  # the newline
        if lines and used + cost > room:
            yield _piece(chunk, lines, number - len(lines))
            lines, used = [], 0
        if cost > room:
            yield from (_piece(chunk, [part], number) for part in _parts(line, room))
        else:
            lines.append(line)
            used += cost
    if lines:
        yield _piece(chunk, lines, chunk.start_line + chunk.text.count("\n") + 1 - len(lines))


def _piece(chunk: Chunk, lines: list[str], first: int) -> Chunk:
    return replace(chunk, text="\n".join(lines), start_line=first, end_line=first + len(lines) - 1)


def _parts(line: str, room: int) -> Iterator[str]:
    """A line cut by characters."""
    while line:
        part = head(line, room)
        yield part
        line = line[len(part) :]


def head(text: str, max_tokens: int) -> str:
    """The longest beginning of `text` that fits; never less than a few characters."""
    used = end = 0
    for match in _PIECE.finditer(text):
        used += _tokens(match.group())
        if used > max_tokens:
            break
        end = match.end()
    return text[: max(end, _SHORTEST_PART)]
