"""The `Store` of a run in the database.

It relies on the two conditional writes that `services` describes.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.agents.messages import Message
from apps.conversations import leases, queries, recovery, searching
from apps.conversations.flags import merged
from apps.conversations.models import Conversation, Turn, now_ms
from apps.conversations.parts import Part, content
from apps.conversations.services import (
    MILLISECOND,
    archived_refusal,
    changed,
    claim_times,
    title_for,
)
from apps.conversations.types import Outcome, StartedTurn, StartTurn
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.principal import current
from apps.retrieval.query import repositories_of


def start_turn(request: StartTurn, owner: str) -> StartedTurn:
    """Take the run lock and save both turns. Creates the conversation with its first message.

    Raises NotFound for the conversation of another user, InvalidInput AGENT_MISMATCH, Conflict
    CONVERSATION_ARCHIVED or RUN_IN_PROGRESS (contract.md §6.3). Then nothing has changed.
    """
    try:
        started = _started(request, owner)
    except Conflict:
        conversation = Conversation.objects.filter(pk=request.conversation_id).first()
        if conversation is not None:
            _check_visible(conversation)
        # The holder of the lock may be dead. That is rare, so it is checked only now.
        recovery.recover_stale(request.conversation_id)
        started = _started(request, owner)
    changed(request.conversation_id)
    return started


def _check_visible(conversation: Conversation) -> None:
    """Raise NotFound for the conversation of another user, to reveal nothing about its state."""
    if not current().may_see(conversation.owner_id):
        raise NotFound("Conversation not found.")


def _started(request: StartTurn, owner: str) -> StartedTurn:
    """Lock, date and save both turns, in few statements: each one delays the first token."""
    history: Sequence[Message] = ()
    replaced = ""
    with transaction.atomic():
        question, answer = _take_lock(request, owner)
        try:
            conversation = _claim(request, owner, question, answer)
        except (Conflict, InvalidInput, NotFound):
            # A database without transactions does not roll back.
            Turn.objects.filter(pk__in=(question.pk, answer.pk)).delete()
            raise
        if conversation is None:
            conversation = _create_conversation(request, owner, answer)
        else:
            replaced = _replace(request, question.created_at)
            history = queries.history(request.conversation_id, before=question.created_at)
    return StartedTurn.of(question, answer, conversation, history, replaced)


def new_turns(request: StartTurn, owner: str, at: datetime) -> tuple[Turn, Turn]:
    """The question and its running answer, which are not saved. `at`: time of the question."""
    fields = {
        "conversation_id": request.conversation_id,
        "provider": request.provider,
        "model": request.model,
        "source": request.source,
        "command": request.command,
    }
    parts = [{"type": "text", "text": request.message}]
    question = Turn(
        role=Turn.Role.USER,
        parts=parts,
        created_at=at,
        **fields,
        **searching.columns(parts, repositories_of(request.areas or ())),
    )
    answer = Turn(
        role=Turn.Role.ASSISTANT,
        status=Turn.Status.RUNNING,
        inflight_id=request.inflight_id or str(uuid.uuid4()),
        owner=owner,
        heartbeat_at=timezone.now(),
        created_at=at + MILLISECOND,
        **fields,
    )
    return question, answer


def _take_lock(request: StartTurn, owner: str) -> tuple[Turn, Turn]:
    """Insert the question and its running answer in one statement. The answer's row is the lock."""
    question, answer = new_turns(request, owner, now_ms())
    try:
        # The lock first: without transactions, the insert stops there.
        Turn.objects.bulk_create([answer, question])
    except IntegrityError as error:
        raise leases.in_progress() from error
    return question, answer


def _claim(request: StartTurn, owner: str, question: Turn, answer: Turn) -> Conversation | None:
    """Set the times of both turns, and return the conversation; None if it does not exist.

    The conversation is read under the lock: the previous run may just have named its thread.
    """
    rows = Conversation.objects.filter(pk=request.conversation_id)
    for conversation in iter(rows.first, None):
        check_open(conversation, request.agent_name)
        leases.claim(request, owner)
        flags = merged(conversation.flags, request.flags)
        changes = {"model": request.model, "flags": flags, "updated_at": now_ms()}
        at = claim_times(conversation, question.created_at, 2, **changes)
        if at is not None:
            if at != question.created_at:
                _set_time(question, at)
                _set_time(answer, at + MILLISECOND)
            conversation.flags = flags
            return conversation
    return None


def new_conversation(request: StartTurn) -> Conversation:
    """The conversation of a first message, which is not saved; the current user owns it."""
    return Conversation(
        id=request.conversation_id,
        provider=request.provider,
        model=request.model,
        title=request.title or title_for(request.message),
        flags=merged({}, request.flags),
        source=request.source,
        agent_name=request.agent_name,
        owner_id=current().user_id,
    )


def _create_conversation(request: StartTurn, owner: str, answer: Turn) -> Conversation:
    conversation = new_conversation(request)
    conversation.last_message_at = answer.created_at
    conversation.save(force_insert=True)
    if request.command is not None:
        leases.claim(request, owner)
    return conversation


def _set_time(turn: Turn, at: datetime) -> None:
    turn.created_at = at
    Turn.objects.filter(pk=turn.pk).update(created_at=at)


def _replace(request: StartTurn, user_turn_at: datetime) -> str:
    """Delete the failed answer that the request retries. Returns its id, or ""."""
    if not request.replaces:
        return ""
    turns = Turn.objects.filter(conversation=request.conversation_id, created_at__lt=user_turn_at)
    last = turns.order_by("-created_at", "-id")[:2]
    if not is_replaceable(request, list(reversed(last))):
        return ""
    turns.filter(pk__in=[turn.pk for turn in last]).delete()
    return request.replaces


def is_replaceable(request: StartTurn, last: Sequence[Turn]) -> bool:
    """Return True if the last two turns are the same question and a failed answer without parts."""
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
    """Check that an agent (or the chat, "") may continue a conversation.

    Raises NotFound for the conversation of another user, InvalidInput AGENT_MISMATCH, Conflict
    CONVERSATION_ARCHIVED.
    """
    _check_visible(conversation)
    if conversation.agent_name != agent_name:
        message = "Conversation belongs to a different agent"
        raise InvalidInput(message, code="AGENT_MISMATCH")
    if conversation.archived:
        raise archived_refusal()


def keep_alive(turn_id: str, parts: Sequence[Part] | None) -> bool:
    """Write a heartbeat of a running turn, and its parts so far unless None.

    Returns False if the run must stop: a Stop was requested, or the row is no longer running.
    """
    changes: dict[str, Any] = {"heartbeat_at": timezone.now()}
    if parts is not None:
        changes["parts"] = list(parts)
    running = Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING, cancel_requested=False)
    return bool(running.update(**changes))


def may_continue(turn_id: str) -> bool:
    """As `keep_alive`, without a write."""
    return Turn.objects.filter(
        pk=turn_id, status=Turn.Status.RUNNING, cancel_requested=False
    ).exists()


def request_cancel(conversation_id: str, inflight_id: str | None = None) -> bool:
    """Request a Stop of a conversation's run in any process. Returns False if there is none."""
    if not all(queries.VALID_ID.match(one) for one in (conversation_id, inflight_id or "none")):
        return False
    if not queries.visible().filter(pk=conversation_id).exists():
        return False
    recovery.recover_stale(conversation_id)
    running = Turn.objects.filter(conversation=conversation_id, status=Turn.Status.RUNNING)
    if inflight_id is not None and not running.filter(inflight_id=inflight_id).exists():
        return False
    # The command first: a step that starts meanwhile is refused, or is running already.
    command_cancelled = leases.request_cancel(conversation_id)
    return bool(running.update(cancel_requested=True)) or command_cancelled


def name_thread(conversation_id: str, thread_id: str) -> None:
    """Save the provider's thread id in the flags of the conversation.

    The caller holds the run lock, so no other process writes the flags.
    """
    rows = Conversation.objects.filter(pk=conversation_id)
    for flags in rows.values_list("flags", flat=True):
        rows.update(flags={**flags, "threadId": thread_id})


def finish_turn(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    """Save the end of a run and release the run lock, whatever the status of the row."""
    now = now_ms()
    with transaction.atomic():
        Turn.objects.filter(pk=turn_id).update(
            status=outcome.status,
            parts=list(outcome.parts),
            error=outcome.error,
            usage=outcome.usage,
            timing=outcome.timing,
            cancel_requested=False,
            **searching.columns(outcome.parts),
        )
        Conversation.objects.filter(pk=conversation_id, last_message_at__lt=now).update(
            last_message_at=now, updated_at=now
        )
    changed(conversation_id)
