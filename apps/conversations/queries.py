"""Queries for conversations and turns."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from apps.agents.messages import Message, Role
from apps.conversations.models import ID_PATTERN, Conversation, Turn
from apps.conversations.paging import Cursor, Page, newest_first
from apps.conversations.parts import Part, content
from apps.core.errors import NotFound
from apps.core.principal import Principal, current

# Filters by `state` (docs/contract.md §1.2).
STATES = {
    "active": Q(archived_at__isnull=True),
    "archived": Q(archived_at__isnull=False),
    "all": Q(),
}
NO_AGENT = "__none__"
# Columns that only a search of conversations reads.
SEARCHED = ("text", "repositories")
VALID_ID = re.compile(ID_PATTERN)


def visible() -> QuerySet[Conversation]:
    """The conversations of the current user; staff sees all."""
    principal = current()
    if principal.is_staff:
        return Conversation.objects.all()
    if principal.user_id is None:
        return Conversation.objects.none()
    return Conversation.objects.filter(owner=principal.user_id)


def topic_of(principal: Principal) -> str:
    """The hub topic of changes of all conversations that `principal` may see."""
    return "sidebar" if principal.is_staff else f"sidebar:{principal.user_id}"


def get(conversation_id: str) -> Conversation:
    """A visible conversation. Raises NotFound; an invalid id never reaches the database."""
    conversation = None
    if VALID_ID.match(conversation_id):
        conversation = visible().filter(pk=conversation_id).first()
    if conversation is None:
        raise NotFound("Conversation not found.")
    return conversation


def conversations(
    *,
    state: str = "active",
    agent_name: str | None = None,
    limit: int = 20,
    cursor: Cursor | None = None,
) -> Page[Conversation]:
    """Conversations by last message, newest first. `state` is a key of STATES.

    agent_name: None: all; NO_AGENT: those of the chat.
    """
    rows = visible().filter(STATES[state])
    if agent_name is not None:
        rows = rows.filter(agent_name="" if agent_name == NO_AGENT else agent_name)
    return newest_first(rows, "last_message_at", limit, cursor)


def turns(conversation_id: str) -> list[Turn]:
    """All turns, oldest first, with the running one. Raises NotFound."""
    get(conversation_id)
    return turns_of(conversation_id)


def turns_of(conversation_id: str) -> list[Turn]:
    """As `turns`, for commands: of a conversation that nobody may be allowed to see."""
    rows = Turn.objects.filter(conversation=conversation_id).defer(*SEARCHED)
    return list(rows.order_by("created_at", "id"))


def turns_page(conversation_id: str, limit: int = 50, cursor: Cursor | None = None) -> Page[Turn]:
    """Finished turns, newest first. Raises NotFound."""
    get(conversation_id)
    rows = Turn.objects.filter(conversation=conversation_id).exclude(status=Turn.Status.RUNNING)
    rows = rows.defer(*SEARCHED)
    return newest_first(rows, "created_at", limit, cursor)


ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
NO_ANSWER = "(No answer was given.)"


def history(conversation_id: str, before: datetime) -> Sequence[Message]:
    """The texts of the turns before a time, oldest first, as messages for a model.

    A turn without text becomes NO_ANSWER: many chat templates require that roles alternate.
    """
    rows = (
        Turn.objects.filter(conversation=conversation_id, created_at__lt=before)
        .order_by("created_at", "id")
        .values_list("role", "parts")
    )
    return as_messages(rows)


def as_messages(rows: Iterable[tuple[str, Sequence[Part]]]) -> list[Message]:
    """Messages for a model, from (role, parts) of finished turns."""
    return [Message(ROLES[role], content(parts).strip() or NO_ANSWER) for role, parts in rows]
