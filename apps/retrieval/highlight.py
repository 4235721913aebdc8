"""Highlight source text as lines of HTML with Pygments' short class names."""

from functools import lru_cache
from pathlib import PurePosixPath
from typing import cast

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

from apps.code.languages import FILE_TYPES, known_type
from apps.retrieval.lexer_process import lexers
from apps.retrieval.marks import marked

# Longer texts are shown plain.
MAX_CHARS = 150_000


def highlight_lines(
    text: str, *, path: str = "", language: str = "", marks: frozenset[str] = frozenset()
) -> list[SafeString]:
    """The lines of `text`, without newlines, as safe HTML.

    The lexer is that of the language, else that of the file name, else none. Names with one of the
    stems in `marks` are inside `<mark>`. Text that takes the lexer too long stays plain.
    """
    if len(text) > MAX_CHARS:
        return [mark_safe(marked(line, marks)) for line in text.split("\n")]
    lines: list[list[str]] = [[]]
    lexer = lexer_for(path, language)
    tokens = (("", text),) if lexer is TextLexer else lexers.tokens(text, lexer.name)
    for css_class, value in tokens:
        first, *rest = value.split("\n")
        lines[-1].append(_span(css_class, first, marks))
        lines.extend([_span(css_class, part, marks)] for part in rest)
    return [mark_safe("".join(parts)) for parts in lines]


# Pygments names by language.
LEXERS = {kind.name: kind.lexer for kind in FILE_TYPES}


def lexer_for(path: str, language: str = "") -> type[Lexer]:
    """The lexer of a language (by our name or an alias of Pygments), else of a path, else
    TextLexer."""
    return _lexer_class(PurePosixPath(path).name, language.strip().lower())


@lru_cache(maxsize=256)
def _lexer_class(name: str, language: str) -> type[Lexer]:
    file_type = known_type(name) if name else None
    for alias in (LEXERS.get(language, language), file_type.lexer if file_type else ""):
        try:
            return cast(type[Lexer], find_lexer_class_by_name(alias))
        except ClassNotFound:
            continue
    return cast(type[Lexer], find_lexer_class_for_filename(name) or TextLexer)


# Classes without a colour. Spans for them would only make the page larger.
PLAIN = frozenset({"", "n", "p", "w", "o", "err", "esc", "x", "nx"})


def _span(css_class: str, text: str, marks: frozenset[str]) -> str:
    # A keyword (`return`, `class`) is not a word of the query.
    html = escape(text) if css_class.startswith("k") else marked(text, marks)
    return f'<span class="{css_class}">{html}</span>' if text and css_class not in PLAIN else html
