"""The verbs that write conversations and turns.

Two things are settled by conditional writes and not by transactions, so that they hold on every
database: a conversation's clock (`_claim_times`), and the run lock (the partial unique constraint
on a running turn). A transaction around them only spares commits.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.agents.messages import Message
from apps.conversations import leases, queries, recovery
from apps.conversations.models import DEFAULT_TITLE, Conversation, Source, Turn, now_ms
from apps.conversations.parts import Part, content
from apps.conversations.types import Outcome, StartedTurn, StartTurn
from codeinfo.errors import Conflict, InvalidInput
from codeinfo.hub import hub

MILLISECOND = timedelta(milliseconds=1)
TITLE_LENGTH = 80
MAX_BATCH = 1000


def title_for(message: str) -> str:
    """A conversation's title from its first message: its first 80 characters, trimmed."""
    return message.strip()[:TITLE_LENGTH] or DEFAULT_TITLE


def changed(conversation_id: str) -> None:
    """Tell the sidebars that a conversation changed or is gone."""
    hub.notify("sidebar", conversation_id)


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
    Turn.objects.filter(conversation__in=ids).delete()
    deleted, _ = Conversation.objects.filter(pk__in=ids).delete()
    for conversation_id in ids:
        changed(conversation_id)
    return deleted


def _checked_batch(ids: Sequence[str], *, archived_only: bool = False) -> list[str]:
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > MAX_BATCH:
        raise InvalidInput(f"At most {MAX_BATCH} conversations at once.")
    possible = [one for one in wanted if queries.AN_ID.match(one)]
    rows = dict(Conversation.objects.filter(pk__in=possible).values_list("id", "archived_at"))
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
    for conversation_id in ids:
        changed(conversation_id)
    return len(ids)


def append_turn(conversation_id: str, **fields: Any) -> Turn:
    """Add a finished turn. Raises NotFound, or Conflict CONVERSATION_ARCHIVED."""
    created_at = None
    while created_at is None:
        conversation = queries.get(conversation_id)
        if conversation.archived:
            raise _archived()
        created_at = _claim_times(conversation, now_ms(), 1)
    turn = Turn.objects.create(conversation_id=conversation_id, created_at=created_at, **fields)
    changed(conversation_id)
    return turn


def start_turn(request: StartTurn, owner: str) -> StartedTurn:
    """Take the conversation's run lock and save the question; the conversation is made if new.

    Raises InvalidInput AGENT_MISMATCH, Conflict CONVERSATION_ARCHIVED or RUN_IN_PROGRESS; then
    nothing has changed.
    """
    try:
        started = _started(request, owner)
    except Conflict:
        # Held by a process that is gone, perhaps: that is rare, so it is looked for only now.
        recovery.recover_stale(request.conversation_id)
        started = _started(request, owner)
    changed(request.conversation_id)
    return started


def _started(request: StartTurn, owner: str) -> StartedTurn:
    """In few statements: the first word of an answer waits for each of them."""
    history: Sequence[Message] = ()
    replaced = ""
    with transaction.atomic():
        question, answer = _take_lock(request, owner)
        try:
            flags = _claim(request, owner, question, answer)
        except (Conflict, InvalidInput):
            # By hand, where a database has no transactions.
            Turn.objects.filter(pk__in=(question.pk, answer.pk)).delete()
            raise
        if flags is None:
            flags = _make(request, owner, answer)
        else:
            replaced = _replace(request, question.created_at)
            history = queries.history(request.conversation_id, before=question.created_at)
    return StartedTurn(
        turn_id=str(answer.pk),
        user_turn_id=str(question.pk),
        inflight_id=answer.inflight_id,
        started_at=answer.created_at,
        flags=flags,
        history=history,
        replaced=replaced,
    )


def _take_lock(request: StartTurn, owner: str) -> tuple[Turn, Turn]:
    """The question and its running answer, whose row is the lock, in one statement."""
    said = {
        "conversation_id": request.conversation_id,
        "provider": request.provider,
        "model": request.model,
        "source": request.source,
        "command": request.command,
    }
    now = now_ms()
    question = Turn(
        role=Turn.Role.USER,
        parts=[{"type": "text", "text": request.message}],
        created_at=now,
        **said,
    )
    answer = Turn(
        role=Turn.Role.ASSISTANT,
        status=Turn.Status.RUNNING,
        inflight_id=request.inflight_id or str(uuid.uuid4()),
        owner=owner,
        heartbeat_at=timezone.now(),
        created_at=now + MILLISECOND,
        **said,
    )
    try:
        # The lock first: a database without transactions stops there.
        Turn.objects.bulk_create([answer, question])
    except IntegrityError as error:
        raise leases.in_progress() from error
    return question, answer


def _claim(request: StartTurn, owner: str, question: Turn, answer: Turn) -> dict[str, Any] | None:
    """Date both turns on the conversation's clock; its flags, None where there is none yet.

    It is read under the lock: the run before may just have named its thread.
    """
    rows = Conversation.objects.filter(pk=request.conversation_id)
    for conversation in iter(rows.first, None):
        check_open(conversation, request.agent_name)
        leases.claim(request, owner)
        flags = {**conversation.flags, **request.flags}
        changes = {"model": request.model, "flags": flags, "updated_at": now_ms()}
        at = _claim_times(conversation, question.created_at, 2, **changes)
        if at is not None:
            if at != question.created_at:
                _date(question, at)
                _date(answer, at + MILLISECOND)
            return flags
    return None


def _make(request: StartTurn, owner: str, answer: Turn) -> dict[str, Any]:
    """The conversation of a first question, and its flags."""
    Conversation.objects.create(
        id=request.conversation_id,
        provider=request.provider,
        model=request.model,
        title=request.title or title_for(request.message),
        flags=dict(request.flags),
        source=request.source,
        agent_name=request.agent_name,
        last_message_at=answer.created_at,
    )
    if request.command is not None:
        leases.claim(request, owner)
    return dict(request.flags)


def _date(turn: Turn, at: datetime) -> None:
    turn.created_at = at
    Turn.objects.filter(pk=turn.pk).update(created_at=at)


def _claim_times(
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


def _replace(request: StartTurn, asked_at: datetime) -> str:
    """Take away the failed answer that this is another try of; its id, or nothing."""
    if not request.replaces:
        return ""
    turns = Turn.objects.filter(conversation=request.conversation_id, created_at__lt=asked_at)
    last = turns.order_by("-created_at", "-id")[:2]
    if not is_replaceable(request, list(reversed(last))):
        return ""
    turns.filter(pk__in=[turn.pk for turn in last]).delete()
    return request.replaces


def is_replaceable(request: StartTurn, last: Sequence[Turn]) -> bool:
    """Whether the last two turns are the same question and an answer that failed without a word."""
    if [turn.role for turn in last] != [Turn.Role.USER, Turn.Role.ASSISTANT]:
        return False
    question, answer = last
    return (
        str(answer.pk) == request.replaces
        and answer.status == Turn.Status.FAILED
        and not answer.parts
        and content(question.parts) == request.message
    )


def check_open(conversation: Conversation, agent_name: str = "") -> None:
    """Raises InvalidInput AGENT_MISMATCH or Conflict CONVERSATION_ARCHIVED where an agent, or the
    chat under the name "", may not go on with a conversation."""
    if conversation.agent_name != agent_name:
        message = "Conversation belongs to a different agent"
        raise InvalidInput(message, code="AGENT_MISMATCH")
    if conversation.archived:
        raise _archived()


def _archived() -> Conflict:
    return Conflict(
        "Conversation is archived and must be restored before use.", code="CONVERSATION_ARCHIVED"
    )


def keep_alive(turn_id: str, parts: Sequence[Part] | None) -> bool:
    """Beat the heart of a running turn, saving its parts so far when given.

    False: this run must end, because somebody asked it to or its row is no longer running.
    """
    changes: dict[str, Any] = {"heartbeat_at": timezone.now()}
    if parts is not None:
        changes["parts"] = list(parts)
    running = Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING, cancel_requested=False)
    return bool(running.update(**changes))


def wanted(turn_id: str) -> bool:
    """Whether a running turn may go on (a read, for between heartbeats)."""
    return Turn.objects.filter(
        pk=turn_id, status=Turn.Status.RUNNING, cancel_requested=False
    ).exists()


def request_cancel(conversation_id: str, inflight_id: str | None = None) -> bool:
    """Ask whichever process makes the answer to stop; False when none is being made."""
    if not all(queries.AN_ID.match(one) for one in (conversation_id, inflight_id or "none")):
        return False
    recovery.recover_stale(conversation_id)
    running = Turn.objects.filter(conversation=conversation_id, status=Turn.Status.RUNNING)
    if inflight_id is not None and not running.filter(inflight_id=inflight_id).exists():
        return False
    # The command first: a step that begins meanwhile is refused, or is running already.
    held = leases.request_cancel(conversation_id)
    return bool(running.update(cancel_requested=True)) or held


def name_thread(conversation_id: str, thread_id: str) -> None:
    """Keep the provider's own name of a conversation; the flags beside it stay as they are.

    For the run that holds the lock: nobody else writes flags meanwhile.
    """
    rows = Conversation.objects.filter(pk=conversation_id)
    for flags in rows.values_list("flags", flat=True):
        rows.update(flags={**flags, "threadId": thread_id})


def finish_turn(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    """Save how a run ended and release the lock, whatever the row says meanwhile."""
    now = now_ms()
    with transaction.atomic():
        Turn.objects.filter(pk=turn_id).update(
            status=outcome.status,
            parts=list(outcome.parts),
            error=outcome.error,
            usage=outcome.usage,
            timing=outcome.timing,
            cancel_requested=False,
        )
        Conversation.objects.filter(pk=conversation_id, last_message_at__lt=now).update(
            last_message_at=now, updated_at=now
        )
    changed(conversation_id)
