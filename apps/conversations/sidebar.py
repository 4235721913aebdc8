"""The list of conversations beside every chat."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Exists, OuterRef

from apps.agents.providers import registry
from apps.conversations.models import Conversation, Turn
from apps.conversations.queries import STATES
from apps.conversations.templatetags.chat import day_label

PAGE = 20
MOST = 1000
STATE_WORDS = {"active": "Active", "all": "Active & Archived", "archived": "Archived"}


@dataclass(frozen=True)
class SidebarQuery:
    """`?state=&q=&n=&c=`: which conversations, how many, and which one is open."""

    state: str = "active"
    text: str = ""
    count: int = PAGE
    current: str = ""

    @classmethod
    def read(cls, data: Mapping[str, str]) -> "SidebarQuery":
        """What cannot be right is read as left out."""
        state, count = data.get("state", ""), data.get("n", "")
        return cls(
            state=state if state in STATE_WORDS else "active",
            text=data.get("q", "").strip(),
            count=min(MOST, max(PAGE, int(count))) if count.isdecimal() else PAGE,
            current=data.get("c", ""),
        )


def context(query: SidebarQuery) -> dict[str, Any]:
    """For `_convos.html`: conversations by day, newest first, and whether there are more."""
    rows = Conversation.objects.filter(STATES[query.state]).annotate(
        running=Exists(Turn.objects.filter(conversation=OuterRef("pk"), status="running"))
    )
    if query.text:
        rows = rows.filter(title__icontains=query.text)
    found = list(rows.order_by("-last_message_at", "-pk")[: query.count + 1])
    shown = found[: query.count]
    labels = {id: provider.label for id, provider in registry.providers().items()}
    lines = [(row, row.agent_name or labels.get(row.provider, row.provider)) for row in shown]
    days = groupby(lines, key=lambda line: day_label(line[0].last_message_at))
    return {
        "query": query,
        "states": STATE_WORDS,
        "days": [(day, list(group)) for day, group in days],
        "more": len(found) > query.count,
        "next_count": query.count + PAGE,
        "none": not shown,
        "never_used": not shown and not Conversation.objects.exists(),
    }
