"""The search of conversations: titles, tags, what was said in them, and their repositories.

Each turn has two columns for it, which are written with its parts: `text`, and `repositories` with
one name a line. They hold plain text, so that every database compares them in the same way; SQLite
itself ignores the case of ASCII letters only.
"""

from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple
from uuid import UUID

import re2
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, When

from apps.conversations.branches import hidden
from apps.conversations.models import Conversation, Turn
from apps.conversations.parts import Part, content, mappings

MAX_REPOSITORIES = 100  # of one turn
MAX_WORDS = 8
# Characters of a snippet before and after the words.
BEFORE, AFTER = 16, 100


class Snippet(NamedTuple):
    """The text around the words that were found in a turn."""

    before: str
    words: str
    after: str
    turn: str = ""


def columns(parts: Sequence[Part], repositories: Sequence[str] = ()) -> dict[str, str]:
    """The columns of a turn with these parts. `repositories`: those that its question is about."""
    names = dict.fromkeys(repositories)
    for part in parts:
        if part["type"] == "tool":
            names |= dict.fromkeys(_texts_at("repository", part.get("parameters")))
            names |= dict.fromkeys(_texts_at("repo", part.get("result")))
    lines = [name for name in list(names)[:MAX_REPOSITORIES] if not {"\n", "\0"} & set(name)]
    return {
        "text": content(parts).casefold().replace("\0", ""),
        "repositories": "".join(f"\n{name}" for name in lines) + "\n" * bool(lines),
    }


def _texts_at(key: str, value: Any) -> Iterator[str]:
    """The texts under a key, alone or in a list, in the parameters or the result of a tool."""
    for row in mappings(value):
        texts = row.get(key)
        yield from (
            text
            for text in (texts if isinstance(texts, list | tuple) else [texts])
            if isinstance(text, str) and text
        )


def words_of(text: str) -> list[str]:
    """The words to find, without regard to case: each must be in the title, in a tag
    or in one message."""
    return list(dict.fromkeys(text.casefold().replace("\0", " ").split()))[:MAX_WORDS]


def having(rows: QuerySet[Conversation], text: str) -> QuerySet[Conversation]:
    """The conversations in which each word of a text is in the title, in a tag or in a message."""
    for word in words_of(text):
        turns = Turn.objects.filter(conversation=OuterRef("pk"), text__contains=word)
        # The title has no column of its own: it is short, and names are rarely not ASCII.
        own = Q(title__icontains=word) | Q(tags__contains=word)
        rows = rows.filter(own | Exists(turns))
    return rows


def about(rows: QuerySet[Conversation], repository: str) -> QuerySet[Conversation]:
    """The conversations that asked about a repository, or whose tools found something in it."""
    lines = Turn.objects.filter(
        conversation=OuterRef("pk"), repositories__contains=f"\n{repository}\n"
    )
    return rows.filter(Exists(lines))


def snippets(conversations: Sequence[Conversation], text: str) -> dict[str, Snippet]:
    """By the id of a conversation, its first message that has a word which the title lacks: the
    first such word. Three queries for all of them."""
    words = words_of(text)
    lacking = {
        row.pk: [word for word in words if word not in row.title.casefold()]
        for row in conversations
    }
    ids = [pk for pk, missing in lacking.items() if missing]
    if not ids:
        return {}
    elsewhere = hidden(row for row in conversations if row.pk in ids)
    first = {f"turn{n}": _first_with(word, elsewhere) for n, word in enumerate(words)}
    annotated = Conversation.objects.filter(pk__in=ids).annotate(**first).order_by()
    chosen: dict[Any, tuple[str, str]] = {}  # conversation and word by turn
    for pk, *turns in annotated.values_list("pk", *first):
        with_turn = dict(zip(words, turns, strict=True))
        word = next((term for term in lacking[pk] if with_turn[term]), None)
        if word is not None:
            chosen[with_turn[word]] = pk, word
    rows = Turn.objects.filter(pk__in=list(chosen)).order_by().values_list("pk", "parts")
    around = ((*chosen[turn], str(turn), content(parts)) for turn, parts in rows)
    return {pk: _around(message, word, turn) for pk, word, turn, message in around}


def _first_with(word: str, elsewhere: Set[UUID]) -> Subquery:
    """The id of the first message of a conversation that has a word; of a hidden one if no other
    has it."""
    turns = Turn.objects.filter(conversation=OuterRef("pk"), text__contains=word)
    last = Case(When(pk__in=elsewhere, then=1), default=0, output_field=IntegerField())
    order = (last, "created_at") if elsewhere else ("created_at",)
    return Subquery(turns.order_by(*order).values("pk")[:1])


def _around(text: str, word: str, turn: str) -> Snippet:
    text = " ".join(text.split())
    at = re2.search(f"(?i){re2.escape(word)}", text)
    if at is None:  # the case of some letters changes their number
        return Snippet(text[: BEFORE + AFTER], "", "", turn)
    start, end = at.span()
    first = max(0, start - BEFORE)
    before = f"{'…' * bool(first)}{text[first:start]}"
    return Snippet(before, text[start:end], text[end : end + AFTER], turn)


def title_parts(title: str, text: str) -> list[tuple[str, bool]]:
    """A title in parts, and whether each is one of the words."""
    words = words_of(text)
    if not words:
        return [(title, False)]
    pattern = re2.compile(f"(?i){'|'.join(map(re2.escape, words))}")
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in pattern.finditer(title):
        parts += [(title[end : match.start()], False), (match[0], True)]
        end = match.end()
    return [part for part in (*parts, (title[end:], False)) if part[0]]
