"""Mark the words of a query in the code that it matched."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from apps.code.syntax.pieces import whole_word
from apps.embedding.words import stems
from apps.retrieval.ranking.rank import STOPWORDS

# Splits HTML into text and tags.
TAGS = re.compile(r"(<[^<>]*>)")
NAMES = re.compile(r"(\w+)")
MIN_LENGTH = 3
# Besides the ranking's stopwords: words that occur in most code.
COMMON = STOPWORDS | frozenset(stems("onto these those but all any get set use used"))


def words_of(query: str) -> frozenset[str]:
    """The stems to mark: for `timed out`, `time`; for `timeouts`, `timeout`."""
    return frozenset(stem for stem in stems(query) if len(stem) >= MIN_LENGTH) - COMMON


def marked(text: str, words: frozenset[str]) -> str:
    """`text` as HTML. Names that contain one of the stems `words` are inside `<mark>`."""
    if not words:
        return escape(text)
    return "".join(
        f"<mark>{part}</mark>" if words.intersection(stems(part)) else escape(part)
        for part in NAMES.split(text)
    )


def name_marked(html: SafeString, name: str) -> SafeString:
    """A highlighted line. Each whole `name` in its text is inside `<mark>`."""
    word = whole_word(escape(name))
    parts = TAGS.split(html)
    parts[::2] = [word.sub(r"<mark>\g<0></mark>", text) for text in parts[::2]]
    return mark_safe("".join(parts))
