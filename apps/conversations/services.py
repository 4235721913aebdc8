"""Functions that write conversations; those of a run are in `rows`.

Two rules rest on conditional writes and not on transactions, so that they hold on every database:
the clock and the head of a conversation (`claim_times`, `follow`), and the run lock (the partial
unique constraint on a running turn). Transactions only save commits.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction

from apps.conversations import leases, queries, searching
from apps.conversations.branches import Tree, parse_turn_id
from apps.conversations.flags import merged, of_branch
from apps.conversations.models import DEFAULT_TITLE, VALID_ID, Conversation, Source, Turn, now_ms
from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.principal import current
from apps.core.security.authentication import requires_credentials

MILLISECOND = timedelta(milliseconds=1)
TITLE_LENGTH = 80
MAX_BATCH = 1000


def title_for(message: str) -> str:
    """The title of a conversation: TITLE_LENGTH characters of its first message."""
    return message.strip()[:TITLE_LENGTH] or DEFAULT_TITLE


def changed(*ids: str) -> None:
    """Notify the sidebars that show these conversations of their change."""
    _notify(_owners(ids))


def _owners(ids: Sequence[str]) -> dict[str, Any]:
    """Owner ids by conversation; None for one without an owner.

    Without required credentials every user sees every conversation, so all are None and no row is
    read.
    """
    owners: dict[str, Any] = dict.fromkeys(ids)
    if requires_credentials(config()):
        owners |= dict(Conversation.objects.filter(pk__in=ids).values_list("pk", "owner_id"))
    return owners


def _notify(owners: Mapping[str, Any]) -> None:
    for conversation_id, owner_id in owners.items():
        hub.notify("sidebar", conversation_id)
        if owner_id is not None:
            hub.notify(f"sidebar:{owner_id}", conversation_id)


def create(
    *,
    provider: str,
    model: str,
    title: str = DEFAULT_TITLE,
    flags: Mapping[str, Any] | None = None,
    source: str = Source.REST,
) -> Conversation:
    """Create an empty conversation with a UUID4."""
    conversation = Conversation.objects.create(
        id=str(uuid.uuid4()),
        provider=provider,
        model=model,
        title=title,
        flags=merged({}, flags or {}),
        source=source,
        owner_id=current().user_id,
    )
    changed(conversation.id)
    return conversation


def archive(conversation_id: str, *, archived: bool = True) -> None:
    """Archive a conversation, or restore it; no effect if it is so already. Raises NotFound."""
    queries.get(conversation_id)
    _archive([conversation_id], archived)


def rename(conversation_id: str, title: str) -> Conversation:
    """Set the title, cut to 255 characters. Raises NotFound, InvalidInput if it is blank."""
    if not title.strip():
        raise InvalidInput("The title must not be blank.")
    conversation = queries.get(conversation_id)
    conversation.title = title.strip()[:255]
    conversation.save(update_fields=["title", "updated_at"])
    changed(conversation_id)
    return conversation


def pin(conversation_id: str, *, pinned: bool = True) -> None:
    """Show a conversation first in the list, or not any more. Raises NotFound."""
    queries.get(conversation_id)
    # Not `updated_at`: nothing in the conversation has changed.
    Conversation.objects.filter(pk=conversation_id).update(pinned=pinned)
    changed(conversation_id)


def bulk_archive(ids: Sequence[str], *, archived: bool = True) -> int:
    """Archive all conversations, or restore all; or none. Returns their number.

    Raises InvalidInput, Conflict BATCH_CONFLICT (contract.md §1.2).
    """
    return _archive(checked_batch(ids), archived)


bulk_restore: Callable[[Sequence[str]], int] = partial(bulk_archive, archived=False)


def bulk_delete(ids: Sequence[str]) -> int:
    """As `bulk_archive`; every conversation must be archived."""
    return delete(checked_batch(ids, archived_only=True))


def delete(ids: Sequence[str]) -> int:
    """Delete conversations with their turns. Their live runs end at the next heartbeat.

    Returns the number of deleted conversations.
    """
    owners = _owners(ids)
    Turn.objects.filter(conversation__in=ids).delete()
    _, deleted = Conversation.objects.filter(pk__in=ids).delete()
    _notify(owners)
    return deleted.get(Conversation._meta.label, 0)


def checked_batch(ids: Sequence[str], *, archived_only: bool = False) -> list[str]:
    """The ids without repetitions. Raises InvalidInput, and Conflict BATCH_CONFLICT if one of them
    is not visible or in the wrong state."""
    requested = list(dict.fromkeys(ids))
    if len(requested) > MAX_BATCH:
        raise InvalidInput(f"At most {MAX_BATCH} conversations at once.")
    valid = [one for one in requested if VALID_ID.match(one)]
    rows = dict(queries.visible().filter(pk__in=valid).values_list("id", "archived_at"))
    invalid = [one for one in requested if one not in rows]
    wrong_state = [one for one in requested if archived_only and one in rows and rows[one] is None]
    if invalid or wrong_state:
        raise Conflict(
            "Bulk operation rejected.",
            code="BATCH_CONFLICT",
            details={"details": {"invalidIds": invalid, "invalidStateIds": wrong_state}},
        )
    return requested


def _archive(ids: Sequence[str], archived: bool) -> int:
    now = now_ms()
    others = Conversation.objects.filter(pk__in=ids, archived_at__isnull=archived)
    others.update(archived_at=now if archived else None, updated_at=now)
    changed(*ids)
    return len(ids)


def append_turn(conversation_id: str, **fields: Any) -> Turn:
    """Add a finished turn to the branch that is followed. Raises NotFound, or Conflict
    CONVERSATION_ARCHIVED."""
    fields |= searching.columns(fields.get("parts", ()))
    while True:
        conversation = queries.get(conversation_id)
        if conversation.archived:
            raise archived_refusal()
        at = max(now_ms(), conversation.last_message_at + MILLISECOND)
        with transaction.atomic():
            # The turn first: the head never names one that does not exist.
            turn = Turn.objects.create(
                conversation_id=conversation_id, created_at=at, parent=conversation.head, **fields
            )
            is_last = claim_times(conversation, at, 1, head=turn.pk)
            if not is_last:
                turn.delete()
        if is_last:
            changed(conversation_id)
            return turn


def follow(conversation_id: str, turn_id: str) -> None:
    """Follow the newest branch through a turn.

    Raises NotFound, and Conflict: CONVERSATION_ARCHIVED, or RUN_IN_PROGRESS while a run or a
    command may add to the branch that is followed.
    """
    conversation = queries.get(conversation_id)
    if conversation.archived:
        raise archived_refusal()
    tree = Tree.read(conversation_id)
    turn = parse_turn_id(turn_id)
    if turn is None or turn not in tree.parents:
        raise NotFound("Turn not found.")
    if turn in tree.branch(tree.head):
        return
    leases.check_idle(conversation_id)
    head = tree.end(turn)
    # None if the turn was deleted meanwhile: the head has moved then.
    last = Turn.objects.filter(pk=head).values_list("flags", flat=True).first() or {}
    flags = of_branch(conversation.flags, last)
    unmoved = Conversation.objects.filter(pk=conversation_id, head=conversation.head)
    if not unmoved.update(head=head, flags=flags):
        raise leases.in_progress()
    changed(conversation_id)
    hub.notify(f"conversation:{conversation_id}")


def claim_times(
    conversation: Conversation, requested: datetime, count: int, **changes: Any
) -> datetime | None:
    """Claim `count` consecutive milliseconds for turns of a conversation. Returns the first.

    It is `requested`, or later if that time is taken. A conditional UPDATE moves `last_message_at`
    from the value in `conversation`; the caller owns the times in between. Returns None if the time
    or the head has changed since the row was read.
    """
    first = max(requested, conversation.last_message_at + MILLISECOND)
    unmoved = Conversation.objects.filter(
        pk=conversation.pk,
        last_message_at=conversation.last_message_at,
        head=conversation.head,
        archived_at=None,
    )
    last = first + (count - 1) * MILLISECOND
    return first if unmoved.update(last_message_at=last, **changes) else None


def archived_refusal() -> Conflict:
    """The error of a write to an archived conversation (contract.md §1.3)."""
    return Conflict(
        "Conversation is archived and must be restored before use.", code="CONVERSATION_ARCHIVED"
    )
