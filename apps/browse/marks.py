"""Mark the words of a query in the code that it matched."""

import re
from collections.abc import Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe

from apps.code.syntax.pieces import whole_word
from apps.embedding.words import stems
from apps.index.lexical.words import is_unspaced, words
from apps.retrieval.ranking.rank import STOPWORDS

# Splits HTML into text and tags.
TAGS = re.compile(r"(<[^<>]*>)")
NAMES = re.compile(r"(\w+)")
# A tag, or one character of the text.
PIECES = re.compile(r"<[^<>]*>|&#?\w{1,8};|[^<]", re.DOTALL)
MIN_LENGTH, PAIR = 3, 2
# Besides the ranking's stopwords: words that occur in most code.
COMMON = STOPWORDS | frozenset(stems("onto these those but all any get set use used"))


def words_of(query: str) -> frozenset[str]:
    """The stems to mark: for `timed out`, `time`; for `timeouts`, `timeout`."""
    return frozenset(_words(query)) - COMMON


def _words(text: str) -> list[str]:
    """The stems in a text that are long enough; of Chinese and the like each two neighbours."""
    return [
        word
        for name in NAMES.findall(text)
        for word in (stems(name) if name.isascii() else words(name))
        if (len(word) == PAIR if is_unspaced(word) else len(word) >= MIN_LENGTH)
    ]


def marked(text: str, wanted: frozenset[str]) -> str:
    """`text` as HTML. Names that contain one of the stems `wanted` are inside `<mark>`; of Chinese
    and the like the stems alone."""
    if not wanted:
        return escape(text)
    return "".join(_marked_name(part, wanted) for part in NAMES.split(text))


def _marked_name(name: str, wanted: frozenset[str]) -> str:
    found = wanted.intersection(_words(name))
    if not found or not all(map(is_unspaced, found)):
        return f"<mark>{name}</mark>" if found else escape(name)
    return re.sub(f"(?:{'|'.join(map(re.escape, found))})+", r"<mark>\g<0></mark>", name)


def counted(text: str, query: str) -> list[tuple[str, int]]:
    """The words of a query that a text has, and how often, in the order of the query. A name counts
    for a word if it is marked for it."""
    wanted = words_of(query)
    typed: dict[str, str] = {}  # by stem
    for name in NAMES.findall(query):
        for stem in sorted(wanted.intersection(_words(name)), key=query.find):
            typed.setdefault(stem, stem if is_unspaced(stem) else name)
    counts = dict.fromkeys(typed.values(), 0)
    for name in NAMES.findall(text):
        for word in {typed[stem] for stem in typed.keys() & set(_words(name))}:
            counts[word] += 1
    return [(word, count) for word, count in counts.items() if count]


def spans_marked(html: SafeString, spans: Sequence[tuple[int, int]]) -> SafeString:
    """A highlighted line. The characters of its text in these spans, which are sorted, are inside
    `<mark>`, in each tag anew."""
    if not spans:  # of most lines
        return html
    inside = {place for start, end in spans for place in range(start, end)}
    parts: list[str] = []
    place, is_open = 0, False
    for piece in PIECES.findall(html):
        is_tag = piece.startswith("<")
        is_marked = not is_tag and place in inside
        if is_marked != is_open:
            parts.append("<mark>" if is_marked else "</mark>")
            is_open = is_marked
        parts.append(piece)
        place += not is_tag
    return mark_safe("".join(parts) + "</mark>" * is_open)


def name_marked(html: SafeString, name: str) -> SafeString:
    """A highlighted line. Each whole `name` in its text is inside `<mark>`."""
    word = whole_word(escape(name))
    parts = TAGS.split(html)
    parts[::2] = [word.sub(r"<mark>\g<0></mark>", text) for text in parts[::2]]
    return mark_safe("".join(parts))
