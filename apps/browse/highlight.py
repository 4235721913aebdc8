"""Highlight source text as lines of HTML with Pygments' short class names."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from html import escape
from pathlib import PurePosixPath
from typing import cast

from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

from apps.browse.lexer_process import MAX_SECONDS, Tokens, lexers
from apps.browse.marks import marked
from apps.code.languages import FILE_TYPES, known_type
from apps.code.values import words

# Longer texts are shown plain.
MAX_CHARS = 150_000
# Blocks of a document or an answer that are highlighted, for MAX_SECONDS in all. More are shown
# plain: a process may lex them one by one, and 600 characters of some languages take it half a
# second.
MAX_BLOCKS = 100
# Files of which some lines are shown: a longer one is lexed only around them.
MAX_FILE_CHARS = 300_000
# Lines that are lexed after those that are shown: a comment may begin in them and end there.
LINES_AFTER = 200
# Languages whose definitions a lexer can begin with. That of PHP must see `<?php` first.
FROM_DEFINITIONS = words(
    "python javascript jsx typescript tsx java kotlin go rust ruby c cpp csharp swift scala lua "
    "haskell elixir zig"
)
# Files whose tokens are kept: a reader scrolls through one of them.
MAX_CACHED_FILES = 4


def highlight_lines(
    text: str, *, path: str = "", language: str = "", marks: frozenset[str] = frozenset()
) -> list[SafeString]:
    """The lines of `text`, without newlines, as safe HTML.

    The lexer is that of the language, else that of the file name, else none. Names with one of the
    stems in `marks` are inside `<mark>`. Text that takes the lexer too long stays plain.
    """
    return highlight_texts([(text, path, language)], marks)[0]


# What `highlight_lines` is given: text, path, language.
Code = tuple[str, str, str]


def highlight_texts(
    codes: Sequence[Code], marks: frozenset[str] = frozenset()
) -> list[list[SafeString]]:
    """`highlight_lines` of each. They are lexed together, and equal ones once."""
    lexers_of = [
        TextLexer if len(text) > MAX_CHARS else lexer_for(path, language)
        for text, path, language in codes
    ]
    keys = [(text, lexer.name) for (text, *_), lexer in zip(codes, lexers_of, strict=True)]
    wanted = list(dict.fromkeys(key for key in keys if key[1] != TextLexer.name))
    known = dict(zip(wanted, lexers.all_tokens(wanted), strict=True))
    return [
        [_html(line, marks) for line in _by_line(known.get(key, (("", key[0]),)))] for key in keys
    ]


def highlight_range(
    lines: Sequence[str],
    first: int,
    last: int,
    *,
    path: str = "",
    language: str = "",
    marks: frozenset[str] = frozenset(),
    whole: bool = False,
    starts: Callable[[], Iterable[int]] = tuple,
) -> list[SafeString]:
    """The lines `first` to `last` (1-based, both included) of a file as safe HTML.

    They may be inside a string or comment. Thus they are lexed from the definition before them, if
    `starts` returns the first lines of definitions, else from the beginning of the file. With
    `whole`, all of the file is lexed, and its tokens are kept for the next range.
    """
    lexer = lexer_for(path, language)
    text = "\n".join(lines)
    size = len(text)
    if size <= MAX_FILE_CHARS and (whole or (lexer.name, text) in _cache):
        return [_html(line, marks) for line in _cache.lines(lexer, text)[first - 1 : last]]
    known = starts() if language in FROM_DEFINITIONS else ()
    begin = max((line for line in known if 1 <= line <= first), default=1)
    before = "\n".join(lines[begin - 1 : last + LINES_AFTER])
    if len(before) > MAX_FILE_CHARS:
        window = "\n".join(lines[first - 1 : last])
        return highlight_lines(window, path=path, language=language, marks=marks)
    shown = _by_line(_tokens(before, lexer))[first - begin : last - begin + 1]
    return [_html(line, marks) for line in shown]


def numbered(lines: Sequence[SafeString], first: int | None) -> SafeString:
    """Lines of HTML as a block of code has them, numbered from `first`; None: without numbers"""
    html = []
    for number, line in enumerate(lines, first or 0):
        label = "" if first is None else f'<span class="ln">{number}</span>'
        html.append(f'<span class="line">{label}{line}\n</span>')
    return mark_safe("".join(html))


def _tokens(text: str, lexer: type[Lexer]) -> Tokens:
    return (("", text),) if lexer is TextLexer else lexers.tokens(text, lexer.name)


def _by_line(tokens: Tokens) -> list[list[tuple[str, str]]]:
    """The tokens of each line, without newlines."""
    lines: list[list[tuple[str, str]]] = [[]]
    for css_class, value in tokens:
        if "\n" not in value:  # most are
            lines[-1].append((css_class, value))
            continue
        first, *rest = value.split("\n")
        lines[-1].append((css_class, first))
        lines.extend([(css_class, part)] for part in rest)
    return lines


def _html(tokens: Tokens, marks: frozenset[str]) -> SafeString:
    as_html = partial(marked, wanted=marks) if marks else escape
    return mark_safe(
        "".join(
            as_html(text) if css_class in PLAIN else _span(css_class, text, as_html)
            for css_class, text in tokens
        )
    )


class _TokenCache:
    """The tokens of the files that were shown last, by lexer and text. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, str], list[list[tuple[str, str]]]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._files

    def lines(self, lexer: type[Lexer], text: str) -> list[list[tuple[str, str]]]:
        key = (lexer.name, text)
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key]
        tokens = _tokens(text, lexer)
        lines = _by_line(tokens)
        # A text that took the lexer too long is one token. It may be free the next time.
        if len(tokens) > 1:
            with self._lock:
                self._files[key] = lines
                while len(self._files) > MAX_CACHED_FILES:
                    self._files.popitem(last=False)
        return lines


_cache = _TokenCache()


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


@dataclass
class Blocks:
    """The blocks of code of one document or answer, of which the first are highlighted."""

    _count: int = 0
    _seconds: float = 0.0
    _waiting: list[Code] = field(default_factory=list, init=False)
    _known: dict[Code, list[SafeString]] = field(default_factory=dict, init=False)

    def later(
        self, text: str, *, path: str = "", language: str = ""
    ) -> Callable[[], list[SafeString]]:
        """`highlight_lines` of the next block. The blocks before the first call of what this
        returns are lexed together."""
        self._count += 1
        if self._count > MAX_BLOCKS or self._seconds >= MAX_SECONDS:
            path = language = ""
        code = text, path, language
        self._waiting.append(code)
        return lambda: self._lines(code)

    def _lines(self, code: Code) -> list[SafeString]:
        if code not in self._known:
            begin = time.monotonic()
            self._known |= zip(self._waiting, highlight_texts(self._waiting), strict=True)
            self._waiting.clear()
            self._seconds += time.monotonic() - begin
        return self._known[code]


def block_language(info: str) -> str:
    """The language, or the path, that Markdown names at the beginning of a block of code."""
    return (info.split(maxsplit=1) or [""])[0]


# Classes without a colour. Spans for them would only make the page larger.
PLAIN = frozenset({"", "n", "p", "w", "o", "err", "esc", "x", "nx"})


def _span(css_class: str, text: str, as_html: Callable[[str], str]) -> str:
    # A keyword (`return`, `class`) is not a word of the query.
    html = escape(text) if css_class.startswith("k") else as_html(text)
    return f'<span class="{css_class}">{html}</span>' if text else ""
