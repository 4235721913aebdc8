"""The verbs of a run (see `rows`) while the database is away or its disk is full: kept by this
process alone.

Nothing of it is written to the database later: the page says so while it lasts. Only the end of an
answer whose row was there before is written, as soon as somebody asks for its conversation. What is
kept here are rows that were never saved, so that pages draw them as they draw any. A conversation
is forgotten once the database has answered for it again, or when many others came after it.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import Error, connection

from apps.agents.messages import Message
from apps.conversations import leases, queries, rows, services
from apps.conversations.models import Conversation, Turn, now_ms
from apps.conversations.parts import Part
from apps.conversations.stream import live_runs
from apps.conversations.types import Outcome, StartedTurn, StartTurn
from apps.core import disk
from apps.core.principal import current

MOST = 200


@dataclass(eq=False)
class Kept:
    conversation: Conversation
    turns: list[Turn] = field(default_factory=list)
    # What was said before and is stored, as far as the database can be read.
    stored: Sequence[Message] = ()


_kept: dict[str, Kept] = {}
_running: dict[str, Turn] = {}
# By conversation: the stored answer whose end could not be written, and that end.
_ends: dict[str, tuple[str, Outcome]] = {}


def database_away() -> bool:
    """Whether the database does not answer at all; one that is locked for a while does."""
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            # A table of ours: SQLite would make an empty database of a file that has gone.
            cursor.execute("SELECT 1 FROM conversations_conversation WHERE 1 = 0")
    except (Error, OSError) as error:
        return "locked" not in str(error)
    return False


def cannot_store(error: Error) -> bool:
    """Whether what raised `error` is to be kept here: the database is away, or its disk full."""
    return disk.is_full(error) or database_away()


def keep_end(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    """Remember how an answer of the database ended, until it can be written there."""
    _ends[conversation_id] = turn_id, outcome
    while len(_ends) > MOST:
        del _ends[next(iter(_ends))]


def write_end(conversation_id: str) -> None:
    """Write what `keep_end` was told of a conversation, which releases its lock. Raises Error where
    that is still impossible."""
    if conversation_id in _ends:
        rows.finish_turn(conversation_id, *_ends[conversation_id])
        _ends.pop(conversation_id, None)


def _with_end(stored: list[Turn]) -> list[Turn]:
    """Stored turns as they are and, where its end is kept here, the last answer as it ended."""
    for turn in stored:
        turn_id, outcome = _ends.get(turn.conversation_id, ("", None))
        if outcome is not None and str(turn.pk) == turn_id:
            _finish(turn, outcome)
    return stored


def _finish(turn: Turn, outcome: Outcome) -> None:
    turn.status, turn.parts = outcome.status, list(outcome.parts)
    turn.error, turn.usage, turn.timing = outcome.error, outcome.usage, outcome.timing


@dataclass(frozen=True)
class Seen:
    """A conversation as it can be shown now: what is stored, and what is kept here behind it.

    `away`: nothing of it is stored now, or can be read. `full`: since the disk is full.
    `forbidden`: there is one, and it belongs to somebody else.
    """

    conversation: Conversation | None
    turns: list[Turn]
    away: bool = False
    forbidden: bool = False
    full: bool = False


def seen(conversation_id: str) -> Seen:
    """Without what is stored while the database is away; one that is busy raises its error."""
    kept = _kept.get(conversation_id)
    unsaved = kept.conversation if kept else None
    with suppress(Error):
        write_end(conversation_id)
    try:
        row = Conversation.objects.filter(pk=conversation_id).first()
        mine = row is not None and current().may_see(row.owner_id)
        stored = queries.turns(conversation_id) if mine else []
    except Error:
        if not database_away():
            raise
        return _permitted(Seen(unsaved, turns(conversation_id), away=True))
    full = disk.has_no_room()
    both = [*_with_end(stored), *turns(conversation_id)]
    return _permitted(Seen(row or unsaved, both, away=full, full=full))


def _permitted(found: Seen) -> Seen:
    conversation = found.conversation
    if conversation is None or current().may_see(conversation.owner_id):
        return found
    return Seen(None, [], found.away, forbidden=True)


def turns(conversation_id: str) -> list[Turn]:
    """All turns as they were said, the running one included; none of somebody else's, who may have
    taken the id while nobody could look it up."""
    kept = _kept.get(conversation_id)
    return list(kept.turns) if kept and current().may_see(kept.conversation.owner_id) else []


def forget(conversation_id: str) -> None:
    _kept.pop(conversation_id, None)


def recall(request: StartTurn) -> None:
    """Before `start_turn`: learn of a stored conversation what its next answer needs to know.

    Raises what `rows.check_open` raises. A database that cannot be read tells nothing.
    """
    try:
        row = Conversation.objects.filter(pk=request.conversation_id).first()
        if row is None:
            return
        rows.check_open(row, request.agent_name)
        stored = _with_end(queries.turns(request.conversation_id))
        history = queries.as_messages((turn.role, turn.parts) for turn in stored)
    except Error:
        return
    _kept.setdefault(request.conversation_id, Kept(row)).stored = history


def start_turn(request: StartTurn, owner: str) -> StartedTurn:
    """As `rows.start_turn`; a run that began before the database went away holds its lock."""
    if live_runs.of(request.conversation_id) is not None:
        raise leases.in_progress()
    kept = _conversation_for(request)
    replaced = request.replaces if rows.is_replaceable(request, kept.turns[-2:]) else ""
    if replaced:
        del kept.turns[-2:]
    said = queries.as_messages((turn.role, turn.parts) for turn in kept.turns)
    history = [*kept.stored, *said]
    asked_at = max(now_ms(), kept.conversation.last_message_at + services.MILLISECOND)
    question = _turn(request, role=Turn.Role.USER, created_at=asked_at)
    question.parts = [{"type": "text", "text": request.message}]
    answer = _turn(request, role=Turn.Role.ASSISTANT, created_at=asked_at + services.MILLISECOND)
    answer.status, answer.owner = Turn.Status.RUNNING, owner
    answer.inflight_id = request.inflight_id or str(uuid.uuid4())
    kept.turns += [question, answer]
    _running[str(answer.pk)] = answer
    kept.conversation.last_message_at = answer.created_at
    kept.conversation.model = request.model
    kept.conversation.flags |= request.flags
    return StartedTurn(
        turn_id=str(answer.pk),
        user_turn_id=str(question.pk),
        inflight_id=answer.inflight_id,
        started_at=answer.created_at,
        flags=dict(kept.conversation.flags),
        history=history,
        replaced=replaced,
        owner_id=kept.conversation.owner_id,
    )


def _conversation_for(request: StartTurn) -> Kept:
    kept = _kept.pop(request.conversation_id, None)
    if kept is None:
        made = Conversation(
            id=request.conversation_id,
            provider=request.provider,
            model=request.model,
            title=request.title or services.title_for(request.message),
            agent_name=request.agent_name,
            source=request.source,
            owner_id=current().user_id,
        )
        kept = Kept(made)
    # Behind all others: the first is the one that was asked longest ago.
    _kept[request.conversation_id] = kept
    while len(_kept) > MOST:
        del _kept[next(iter(_kept))]
    rows.check_open(kept.conversation, request.agent_name)
    return kept


def _turn(request: StartTurn, **fields: Any) -> Turn:
    return Turn(
        conversation_id=request.conversation_id,
        provider=request.provider,
        model=request.model,
        source=request.source,
        command=request.command,
        **fields,
    )


def keep_alive(turn_id: str, parts: Sequence[Part] | None) -> bool:
    if parts is not None and turn_id in _running:
        _running[turn_id].parts = list(parts)
    return True


def wanted(turn_id: str) -> bool:
    return True


def name_thread(conversation_id: str, thread_id: str) -> None:
    kept = _kept.get(conversation_id)
    if kept is not None:
        kept.conversation.flags["threadId"] = thread_id


def finish_turn(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    _finish(_running.pop(turn_id), outcome)
