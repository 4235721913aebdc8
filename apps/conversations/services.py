"""The verbs that write conversations; those of a run are in `rows`.

Two things are settled by conditional writes and not by transactions, so that they hold on every
database: a conversation's clock (`claim_times`), and the run lock (the partial unique constraint
on a running turn). A transaction around them only spares commits.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from apps.conversations import queries
from apps.conversations.models import DEFAULT_TITLE, Conversation, Source, Turn, now_ms
from apps.core.authentication import requires_credentials
from apps.core.config import config
from apps.core.errors import Conflict, InvalidInput
from apps.core.hub import hub
from apps.core.principal import current

MILLISECOND = timedelta(milliseconds=1)
TITLE_LENGTH = 80
MAX_BATCH = 1000


def title_for(message: str) -> str:
    """A conversation's title from its first message: its first 80 characters, trimmed."""
    return message.strip()[:TITLE_LENGTH] or DEFAULT_TITLE


def changed(conversation_id: str) -> None:
    """Tell the sidebars of those who may see a conversation that it changed."""
    for owner_id in _owners([conversation_id]).values():
        _tell(conversation_id, owner_id)


def _owners(ids: Sequence[str]) -> dict[str, Any]:
    """Owner ids by conversation; None for one without an owner, and where nobody asks for owners.

    Where no credentials are required everyone sees everything, and no row need be read.
    """
    owners: dict[str, Any] = dict.fromkeys(ids)
    if requires_credentials(config()):
        owners |= dict(Conversation.objects.filter(pk__in=ids).values_list("pk", "owner_id"))
    return owners


def _tell(conversation_id: str, owner_id: Any) -> None:
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
    """A new, empty conversation under an id of ours."""
    conversation = Conversation.objects.create(
        id=str(uuid.uuid4()),
        provider=provider,
        model=model,
        title=title,
        flags=dict(flags or {}),
        source=source,
        owner_id=current().user_id,
    )
    changed(conversation.id)
    return conversation


def archive(conversation_id: str) -> None:
    """Raises NotFound; archiving twice keeps the first time."""
    queries.get(conversation_id)
    _archive([conversation_id])


def restore(conversation_id: str) -> None:
    """Raises NotFound."""
    queries.get(conversation_id)
    _restore([conversation_id])


def rename(conversation_id: str, title: str) -> Conversation:
    """Raises NotFound, or InvalidInput when the title is blank. Long titles are cut."""
    if not title.strip():
        raise InvalidInput("The title must not be blank.")
    conversation = queries.get(conversation_id)
    conversation.title = title.strip()[:255]
    conversation.save(update_fields=["title", "updated_at"])
    changed(conversation_id)
    return conversation


def bulk_archive(ids: Sequence[str]) -> int:
    """Archive all or, with a BATCH_CONFLICT, none; answers how many matched."""
    return _archive(_checked_batch(ids))


def bulk_restore(ids: Sequence[str]) -> int:
    return _restore(_checked_batch(ids))


def bulk_delete(ids: Sequence[str]) -> int:
    """Delete for good; every one must be archived, else none is deleted."""
    return delete(_checked_batch(ids, archived_only=True))


def delete(ids: Sequence[str]) -> int:
    """Delete conversations with their turns. A run that is live in one ends by itself."""
    owners = _owners(ids)
    Turn.objects.filter(conversation__in=ids).delete()
    deleted, _ = Conversation.objects.filter(pk__in=ids).delete()
    for conversation_id, owner_id in owners.items():
        _tell(conversation_id, owner_id)
    return deleted


def _checked_batch(ids: Sequence[str], *, archived_only: bool = False) -> list[str]:
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > MAX_BATCH:
        raise InvalidInput(f"At most {MAX_BATCH} conversations at once.")
    possible = [one for one in wanted if queries.AN_ID.match(one)]
    rows = dict(queries.visible().filter(pk__in=possible).values_list("id", "archived_at"))
    invalid = [one for one in wanted if one not in rows]
    wrong_state = [one for one in wanted if archived_only and one in rows and rows[one] is None]
    if invalid or wrong_state:
        raise Conflict(
            "Bulk operation rejected.",
            code="BATCH_CONFLICT",
            details={"details": {"invalidIds": invalid, "invalidStateIds": wrong_state}},
        )
    return wanted


def _archive(ids: Sequence[str]) -> int:
    now = now_ms()
    Conversation.objects.filter(pk__in=ids, archived_at=None).update(
        archived_at=now, updated_at=now
    )
    return _told(ids)


def _restore(ids: Sequence[str]) -> int:
    Conversation.objects.filter(pk__in=ids).exclude(archived_at=None).update(
        archived_at=None, updated_at=now_ms()
    )
    return _told(ids)


def _told(ids: Sequence[str]) -> int:
    for conversation_id, owner_id in _owners(ids).items():
        _tell(conversation_id, owner_id)
    return len(ids)


def append_turn(conversation_id: str, **fields: Any) -> Turn:
    """Add a finished turn. Raises NotFound, or Conflict CONVERSATION_ARCHIVED."""
    created_at = None
    while created_at is None:
        conversation = queries.get(conversation_id)
        if conversation.archived:
            raise archived_refusal()
        created_at = claim_times(conversation, now_ms(), 1)
    turn = Turn.objects.create(conversation_id=conversation_id, created_at=created_at, **fields)
    changed(conversation_id)
    return turn


def claim_times(
    conversation: Conversation, wanted: datetime, count: int, **changes: Any
) -> datetime | None:
    """The first of `count` milliseconds that no turn of the conversation has or will have, at
    `wanted` if it can be; None where its clock moved since it was read.

    They are claimed on the conversation's row: whoever moved `last_message_at` from the value that
    was read owns the times in between.
    """
    first = max(wanted, conversation.last_message_at + MILLISECOND)
    unmoved = Conversation.objects.filter(
        pk=conversation.pk, last_message_at=conversation.last_message_at, archived_at=None
    )
    last = first + (count - 1) * MILLISECOND
    return first if unmoved.update(last_message_at=last, **changes) else None


def archived_refusal() -> Conflict:
    return Conflict(
        "Conversation is archived and must be restored before use.", code="CONVERSATION_ARCHIVED"
    )
