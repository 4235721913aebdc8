"""The list of conversations beside every chat."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import DatabaseError, Error
from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.agents.providers import registry
from apps.conversations import memory, searching, tagging, tags
from apps.conversations.models import Conversation, Turn
from apps.conversations.queries import STATES, topic_of, visible
from apps.conversations.searching import Snippet
from apps.conversations.templatetags.chat import day_label
from apps.core.concurrency.hub import hub
from apps.core.principal import current
from apps.index.queries import published_roots
from apps.retrieval.repositories import repo_id


@dataclass(frozen=True)
class Line:
    """A conversation in the list.

    maker: the name of its agent or the label of its provider.
    title: the title in parts, and whether each is one of the words that were searched for.
    snippet: where the words are in its messages.
    """

    row: Conversation
    maker: str
    title: Sequence[tuple[str, bool]]
    snippet: Snippet | None = None


PAGE = 20
RECENT = 8
MOST = 1000
MAX_TEXT = 200  # characters that are searched for
MAX_VALUE = 1_000  # characters of each filter
# Rows of a search that show where the words are.
MAX_SNIPPETS = 60
PINNED = "Pinned"
STATE_WORDS = {"active": "Active", "all": "Active & Archived", "archived": "Archived"}


@dataclass(frozen=True)
class SidebarQuery:
    """`?state=&q=&repo=&tag=&n=&c=&a=`: the filters of the list.

    state: a key of STATE_WORDS.
    text: words of the title, of the tags or of the messages.
    repository: id of a repository that it is about; "": any.
    tag: a tag that it has; "": any.
    count: number of conversations, PAGE..MOST.
    current: id of the open conversation.
    agent: name of the agent; "" for the chat.
    """

    state: str = "active"
    text: str = ""
    repository: str = ""
    tag: str = ""
    count: int = PAGE
    current: str = ""
    agent: str = ""

    @property
    def loaded_more(self) -> bool:
        return self.count > PAGE

    @classmethod
    def read(cls, data: Mapping[str, str]) -> "SidebarQuery":
        """Parse a query string. Invalid values count as left out."""
        # PostgreSQL refuses a NUL, and SQLite a pattern of 50,000 bytes.
        data = {key: value.replace("\0", "")[:MAX_VALUE] for key, value in data.items()}
        state, count = data.get("state", ""), data.get("n", "")
        return cls(
            state=state if state in STATE_WORDS else "active",
            text=data.get("q", "").strip()[:MAX_TEXT],
            repository=data.get("repo", "").strip(),
            tag=data.get("tag", "").strip(),
            count=min(MOST, max(PAGE, int(count))) if count.isdecimal() else PAGE,
            current=data.get("c", ""),
            agent=data.get("a", ""),
        )


def context(query: SidebarQuery) -> dict[str, Any]:
    """The context of `_convos.html`: conversations by day, newest first.

    While the database is unavailable there are none, and `away` is True.
    """
    # Read before the rows: a change meanwhile has a later version.
    shown = {"query": query, "states": STATE_WORDS, "mark": hub.version(topic_of(current()))}
    try:
        return shown | _listed(query)
    except Error:
        if not memory.database_away():
            raise
        return shown | {"away": True}


def _listed(query: SidebarQuery) -> dict[str, Any]:
    rows = _newest(query.state).filter(agent_name=query.agent)
    rows = searching.having(rows, query.text)
    if query.repository:
        rows = searching.about(rows, query.repository)
    if query.tag:
        rows = tags.having(rows, query.tag)
    count = _reaching(query, rows)
    fetched = list(rows[: count + 1])
    shown = fetched[:count]
    days = groupby(
        _lines(shown, query.text),
        key=lambda line: PINNED if line.row.pinned else day_label(line.row.last_message_at),
    )
    return {
        "days": [(day, list(group)) for day, group in days],
        "subjects": sorted({repo_id(root) for root in published_roots()}),
        "tags": tagging.known(),
        "more": len(fetched) > count,
        "next_count": count + PAGE,
        "none": not shown,
        "never_used": not shown and not visible().filter(agent_name=query.agent).exists(),
    }


def _reaching(query: SidebarQuery, rows: QuerySet[Conversation]) -> int:
    """The number of rows to show: as many as are asked for, and more up to the open one if the list
    is not narrowed. Without it, the open conversation could not be seen in the list."""
    if not query.current or query.text or query.repository or query.tag:
        return query.count
    row = rows.filter(pk=query.current).first()
    if row is None:
        return query.count
    before = Q(last_message_at__gt=row.last_message_at) | Q(
        last_message_at=row.last_message_at, pk__gt=row.pk
    )
    above = rows.filter(before, pinned=True) if row.pinned else rows.filter(Q(pinned=True) | before)
    needed = above.count() // PAGE * PAGE + PAGE
    return min(MOST, max(query.count, needed))


def recent() -> list[Line]:
    """The sidebar of the other pages; empty while the database is unavailable."""
    try:
        return _lines(_newest("active")[:RECENT])
    except DatabaseError:
        return []


def _newest(state: str) -> QuerySet[Conversation]:
    running = Turn.objects.filter(conversation=OuterRef("pk"), status="running")
    rows = visible().filter(STATES[state]).annotate(running=Exists(running))
    return rows.order_by("-pinned", "-last_message_at", "-pk")


def _lines(rows: Iterable[Conversation], text: str = "") -> list[Line]:
    labels = {id: provider.label for id, provider in registry.providers().items()}
    rows = list(rows)
    snippets = searching.snippets(rows[:MAX_SNIPPETS], text)
    return [
        Line(
            row,
            row.agent_name or labels.get(row.provider, row.provider),
            searching.title_parts(row.title, text),
            snippets.get(row.pk),
        )
        for row in rows
    ]
