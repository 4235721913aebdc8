"""Queries for conversations and turns."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Count, IntegerField, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from apps.agents.messages import Message, Role
from apps.conversations import tags
from apps.conversations.branches import Tree, followed, hidden
from apps.conversations.models import VALID_ID, Conversation, Turn
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
    tag: str = "",
    limit: int = 20,
    cursor: Cursor | None = None,
) -> Page[Conversation]:
    """Conversations by last message, newest first. `state` is a key of STATES.

    agent_name: None: all; NO_AGENT: those of the chat. tag: a tag that they have; "": any.
    """
    rows = visible().filter(STATES[state])
    if agent_name is not None:
        rows = rows.filter(agent_name="" if agent_name == NO_AGENT else agent_name)
    if tag:
        rows = tags.having(rows, tag)
    return newest_first(rows, "last_message_at", limit, cursor)


def turns(conversation_id: str) -> list[Turn]:
    """The turns of the branch that is followed, oldest first, with the running one and with their
    siblings. Raises NotFound."""
    get(conversation_id)
    tree = Tree.read(conversation_id)
    rows = list(tree.turns(tree.head).defer(*SEARCHED).order_by("created_at", "id"))
    for row in rows:
        row.siblings = tree.siblings(row.pk)
    return rows


def turn(turn_id: str) -> Turn | None:
    """A turn with its siblings, for a reader of its conversation."""
    row = Turn.objects.filter(pk=turn_id).first()
    if row is not None:
        siblings = Turn.objects.filter(conversation=row.conversation_id, parent=row.parent)
        row.siblings = list(siblings.order_by("created_at", "id").values_list("pk", flat=True))
    return row


def answer(conversation_id: str, turn_id: str) -> Turn | None:
    """A finished answer of a conversation; None if it is not stored. Raises NotFound."""
    rows = Turn.objects.filter(conversation=get(conversation_id), role=Turn.Role.ASSISTANT)
    try:
        return rows.exclude(status=Turn.Status.RUNNING).defer(*SEARCHED).filter(pk=turn_id).first()
    except ValidationError:
        return None


def turns_page(conversation_id: str, limit: int = 50, cursor: Cursor | None = None) -> Page[Turn]:
    """Finished turns of the branch that is followed, newest first. Raises NotFound."""
    get(conversation_id)
    rows = followed(conversation_id).exclude(status=Turn.Status.RUNNING).defer(*SEARCHED)
    return newest_first(rows, "created_at", limit, cursor)


def counts(conversation_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Conversation id → number of its turns, and of the tokens that models have counted in them.

    A conversation without turns is left out.
    """
    rows = Turn.objects.filter(conversation__in=list(conversation_ids)).order_by()
    counted = rows.values_list("conversation").annotate(number=Count("id"), tokens=TOKENS)
    return {pk: (turns, tokens or 0) for pk, turns, tokens in counted}


TOKENS = Sum(Cast(KT("usage__totalTokens"), IntegerField()))
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
NO_ANSWER = "(No answer was given.)"


def history(conversation_id: str, last: UUID | None) -> Sequence[Message]:
    """The texts of the branch that ends with a turn, oldest first, as messages for a model.

    A turn without text becomes NO_ANSWER: many chat templates require that roles alternate.
    """
    if last is None:
        return ()
    rows = Tree.read(conversation_id).turns(last).order_by("created_at", "id")
    return as_messages(rows.values_list("role", "parts"))


def as_messages(rows: Iterable[tuple[str, Sequence[Part]]]) -> list[Message]:
    """Messages for a model, from (role, parts) of finished turns."""
    return [Message(ROLES[role], content(parts).strip() or NO_ANSWER) for role, parts in rows]


def recent_questions(limit: int) -> list[tuple[Conversation, str]]:
    """The newest questions of the newest active conversations, on the branch that each follows."""
    newest = visible().filter(STATES["active"]).order_by("-last_message_at")[:limit]
    by_id = {row.pk: row for row in newest}
    own = Turn.objects.filter(conversation__in=list(by_id), role=Turn.Role.USER)
    own = own.exclude(pk__in=hidden(by_id.values()))
    rows = own.order_by("-created_at").values_list("conversation", "parts")[:limit]
    return [(by_id[pk], content(parts).strip()) for pk, parts in rows]
