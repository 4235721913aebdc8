"""The list of conversations beside every chat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import DatabaseError, Error
from django.db.models import Exists, OuterRef, QuerySet

from apps.agents.providers import registry
from apps.conversations import memory
from apps.conversations.models import Conversation, Turn
from apps.conversations.queries import STATES, topic_of, visible
from apps.conversations.templatetags.chat import day_label
from apps.core.hub import hub
from apps.core.principal import current

# A conversation, and the name of its agent or the label of its provider.
Line = tuple[Conversation, str]

PAGE = 20
RECENT = 8
MOST = 1000
STATE_WORDS = {"active": "Active", "all": "Active & Archived", "archived": "Archived"}


@dataclass(frozen=True)
class SidebarQuery:
    """`?state=&q=&n=&c=&a=`: the filters of the list.

    state: a key of STATE_WORDS.
    text: part of the title.
    count: number of conversations, PAGE..MOST.
    current: id of the open conversation.
    agent: name of the agent; "" for the chat.
    """

    state: str = "active"
    text: str = ""
    count: int = PAGE
    current: str = ""
    agent: str = ""

    @property
    def loaded_more(self) -> bool:
        return self.count > PAGE

    @classmethod
    def read(cls, data: Mapping[str, str]) -> "SidebarQuery":
        """Parse a query string. Invalid values count as left out."""
        state, count = data.get("state", ""), data.get("n", "")
        return cls(
            state=state if state in STATE_WORDS else "active",
            text=data.get("q", "").strip(),
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
    if query.text:
        rows = rows.filter(title__icontains=query.text)
    found = list(rows[: query.count + 1])
    shown = found[: query.count]
    days = groupby(_lines(shown), key=lambda line: day_label(line[0].last_message_at))
    return {
        "days": [(day, list(group)) for day, group in days],
        "more": len(found) > query.count,
        "next_count": query.count + PAGE,
        "none": not shown,
        "never_used": not shown and not visible().filter(agent_name=query.agent).exists(),
    }


def recent() -> list[Line]:
    """The sidebar of the other pages; empty while the database is unavailable."""
    try:
        return _lines(_newest("active")[:RECENT])
    except DatabaseError:
        return []


def _newest(state: str) -> QuerySet[Conversation]:
    running = Turn.objects.filter(conversation=OuterRef("pk"), status="running")
    rows = visible().filter(STATES[state]).annotate(running=Exists(running))
    return rows.order_by("-last_message_at", "-pk")


def _lines(rows: Iterable[Conversation]) -> list[Line]:
    labels = {id: provider.label for id, provider in registry.providers().items()}
    return [(row, row.agent_name or labels.get(row.provider, row.provider)) for row in rows]
