"""The tokens of source texts, for `lexer_process`. It imports only Pygments."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES


def lexed(text: str, name: str) -> list[tuple[str, str]]:
    """`tokens` by Pygments' lexer of that name."""
    return list(tokens(text, (find_lexer_class(name) or TextLexer)()))


def all_lexed(texts: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """`lexed` of several texts, each with the name of its lexer."""
    return [lexed(text, name) for text, name in texts]


def tokens(text: str, lexer: Lexer) -> Iterator[tuple[str, str]]:
    """(CSS class, text) of each token; the texts joined are exactly `text`.

    Pygments' `get_tokens` strips blank ends and turns lone carriage returns into newlines, which
    would make line numbers wrong.
    """
    end = 0
    for index, kind, value in lexer.get_tokens_unprocessed(text):
        if index != end:
            # The lexer went back or left text out: return the rest plain.
            break
        yield _css_class(kind), value
        end += len(value)
    if end < len(text):
        yield "", text[end:]


@lru_cache(maxsize=512)
def _css_class(kind: tuple[str, ...]) -> str:
    """The class of a token type, or of its nearest ancestor that has one."""
    while kind not in STANDARD_TYPES:
        kind = kind.parent  # type: ignore[attr-defined]
    return str(STANDARD_TYPES[kind])
