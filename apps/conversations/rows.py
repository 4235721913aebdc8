"""The `Store` of a run in the database.

It relies on the two conditional writes that `services` describes.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.agents.messages import Message
from apps.conversations import leases, queries, recovery, searching
from apps.conversations.branches import parse_turn_id
from apps.conversations.flags import THREAD, merged, of_branch
from apps.conversations.models import VALID_ID, Conversation, Turn, now_ms
from apps.conversations.parts import Part, content
from apps.conversations.scope import SCOPE
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
    forks = False
    with transaction.atomic():
        parent = _parent(request)
        question, answer = _take_lock(request, owner, parent)
        try:
            claimed = _claim(request, owner, question, answer)
        except (Conflict, InvalidInput, NotFound):
            # A database without transactions does not roll back.
            added = {question.pk, answer.pk} - {parent and parent.pk}
            Turn.objects.filter(pk__in=added).delete()
            raise
        if claimed is None:
            _correct(question, parent=None)  # it may just have been deleted
            conversation = _create_conversation(request, owner, answer)
        else:
            conversation, forks = claimed
            history = queries.history(request.conversation_id, question.parent)
    return StartedTurn(question, answer, conversation, history, forks)


def _parent(request: StartTurn) -> Turn | None:
    """The turn that the request names. Raises what `check_open` raises, and INVALID_PARENT."""
    if not request.parent:
        return None
    conversation = Conversation.objects.filter(pk=request.conversation_id).first()
    if conversation is not None:
        check_open(conversation, request.agent_name)
    turn_id = parse_turn_id(request.parent)
    turns = Turn.objects.filter(conversation=request.conversation_id)
    turn = turns.filter(pk=turn_id).first() if turn_id else None
    if turn is None:
        raise invalid_parent("parentTurnId must be a turn of this conversation.")
    expected = content(turn.parts) if turn.role == Turn.Role.USER else request.message
    if not expected or request.message not in ("", expected):
        raise invalid_parent("A question gets another answer with its own text as the message.")
    return turn


def invalid_parent(message: str) -> InvalidInput:
    """The error of a message that cannot follow the turn it names (contract.md §2.3)."""
    return InvalidInput(message, code="INVALID_PARENT")


def new_turns(
    request: StartTurn, owner: str, at: datetime, question: Turn | None = None
) -> tuple[Turn, Turn]:
    """The question and its running answer, of which none is saved that is new.

    at: time of the question; question: the one that gets another answer.
    """
    fields = {
        "conversation_id": request.conversation_id,
        "provider": request.provider,
        "model": request.model,
        "source": request.source,
        "command": request.command,
    }
    parts = [{"type": "text", "text": request.message}]
    if question is None:
        question = Turn(
            role=Turn.Role.USER,
            flags=_scope_of(request.flags),
            parts=parts,
            created_at=at,
            **fields,
            **searching.columns(parts, repositories_of(request.areas or ())),
        )
    answer = Turn(
        role=Turn.Role.ASSISTANT,
        parent=question.pk,
        status=Turn.Status.RUNNING,
        inflight_id=request.inflight_id or str(uuid.uuid4()),
        owner=owner,
        heartbeat_at=timezone.now(),
        created_at=at + MILLISECOND,
        **fields,
    )
    return question, answer


def _scope_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of a question in a conversation with these flags."""
    return {SCOPE: flags.get(SCOPE, [])}


def _take_lock(request: StartTurn, owner: str, parent: Turn | None) -> tuple[Turn, Turn]:
    """Insert the question and its running answer in one statement. The answer's row is the lock."""
    again = parent if parent is not None and parent.role == Turn.Role.USER else None
    question, answer = new_turns(request, owner, now_ms(), again)
    if again is None:
        # `_claim` corrects it. It is right already if this process is killed before.
        question.parent = parent.pk if parent else None
        if request.parent is None:
            heads = Conversation.objects.filter(pk=request.conversation_id)
            question.parent = heads.values_list("head", flat=True).first()
    try:
        # The lock first: without transactions, the insert stops there.
        Turn.objects.bulk_create([answer] if again else [answer, question])
    except IntegrityError as error:
        raise leases.in_progress() from error
    return question, answer


def _claim(
    request: StartTurn, owner: str, question: Turn, answer: Turn
) -> tuple[Conversation, bool] | None:
    """Set the times of both turns and the head. Returns the conversation, and whether the run
    begins a branch; None if the conversation does not exist.

    The conversation is read under the lock: the previous run may just have named its thread.
    """
    is_new = question.pk != parse_turn_id(request.parent or "")
    rows = Conversation.objects.filter(pk=request.conversation_id)
    for conversation in iter(rows.first, None):
        check_open(conversation, request.agent_name)
        leases.claim(request, owner)
        head = conversation.head
        if request.parent and not Turn.objects.filter(pk=request.parent).exists():
            raise invalid_parent("The turn has been deleted.")
        parent = head if request.parent is None else question.parent
        forks = head != (parent if is_new else question.pk)
        flags = merged(conversation.flags, request.flags)
        if forks and flags.get(THREAD) == conversation.flags.get(THREAD):
            flags = of_branch(flags, {})  # also if the request repeats it
        changes = {"model": request.model, "flags": flags, "updated_at": now_ms()}
        asked_at = answer.created_at - MILLISECOND
        at = claim_times(conversation, asked_at, 2, head=answer.pk, **changes)
        if at is not None:
            if is_new:
                _correct(question, created_at=at, parent=parent, flags=_scope_of(flags))
            else:
                _delete_failure(question, head)
            _correct(answer, created_at=at + MILLISECOND)
            conversation.flags = flags if is_new else {**flags, **question.flags}
            return conversation, forks
    if request.parent:
        raise invalid_parent("The conversation has been deleted.")
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
    conversation.last_message_at, conversation.head = answer.created_at, answer.pk
    conversation.save(force_insert=True)
    if request.command is not None:
        leases.claim(request, owner)
    return conversation


def _correct(turn: Turn, **values: Any) -> None:
    wrong = {name: value for name, value in values.items() if getattr(turn, name) != value}
    for name, value in wrong.items():
        setattr(turn, name, value)
    if wrong:
        Turn.objects.filter(pk=turn.pk).update(**wrong)


def _delete_failure(question: Turn, head: uuid.UUID | None) -> None:
    """Delete the answer that was followed if it failed without a word; another one replaces it."""
    # Parents have no index of their own.
    answers = Turn.objects.filter(conversation=question.conversation_id, parent=question.pk)
    for answer in answers:
        if answer.pk == head and has_failed_empty(answer):
            answer.delete()


def has_failed_empty(answer: Turn) -> bool:
    return answer.status == Turn.Status.FAILED and not answer.parts


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
    if not all(VALID_ID.match(one) for one in (conversation_id, inflight_id or "none")):
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


def name_thread(conversation_id: str, turn_id: str, thread_id: str) -> None:
    """Save the provider's thread id in the flags of the conversation and of its answer.

    The caller holds the run lock, so no other process writes the flags.
    """
    Turn.objects.filter(pk=turn_id).update(flags={THREAD: thread_id})
    rows = Conversation.objects.filter(pk=conversation_id)
    for flags in rows.values_list("flags", flat=True):
        rows.update(flags={**flags, THREAD: thread_id})


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
