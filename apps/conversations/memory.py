"""A `Store` in the memory of this process, used while the database is unavailable or its disk full.

It holds unsaved model instances, so pages render them like stored rows. They are never written to
the database, and the page says so. The one exception is the end of an answer whose row exists
already: it is written at the next access to its conversation. A conversation is discarded when the
database stores its next turn, or when more than MAX_CONVERSATIONS are held.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from django.db import Error

from apps.agents.messages import Message
from apps.conversations import leases, queries, recovery, rows, services
from apps.conversations.flags import merged
from apps.conversations.models import Conversation, Turn, now_ms
from apps.conversations.paging import Cursor, Page, page_of
from apps.conversations.parts import Part, content
from apps.conversations.stream import live_runs
from apps.conversations.types import Outcome, StartedTurn, StartTurn
from apps.core.data.database import ping
from apps.core.errors import NotFound, Unavailable
from apps.core.principal import current
from apps.core.system import disk

MAX_CONVERSATIONS = 200


@dataclass(eq=False)
class UnsavedConversation:
    """A conversation and its unsaved turns.

    conversation: the stored row, or an unsaved one.
    turns: the turns that are not stored, oldest first.
    stored: the messages of the stored turns, as far as the database could be read.
    """

    conversation: Conversation
    turns: list[Turn] = field(default_factory=list)
    stored: Sequence[Message] = ()


unsaved_conversations: dict[str, UnsavedConversation] = {}
# Running answers, by turn id.
_running: dict[str, Turn] = {}
# Ends that could not be written, by conversation: the turn id of the stored answer, and its end.
_deferred_ends: dict[str, tuple[str, Outcome]] = {}


def database_away() -> bool:
    """Return True if the database does not answer. A locked database counts as available."""
    try:
        # Query a real table: SQLite creates an empty database if the file is missing.
        ping("SELECT 1 FROM conversations_conversation WHERE 1 = 0")
    except (Error, OSError) as error:
        return "locked" not in str(error)
    return False


def cannot_store(error: Error) -> bool:
    """Return True if the database is unavailable or its disk full, so that this store is used."""
    return disk.is_full(error) or database_away()


def reason(error: Error) -> str:
    """Why the database `cannot_store`, for clients."""
    return "the disk is full" if disk.is_full(error) else "the database is away"


def defer_end(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    """Hold the end of a stored answer until it can be written."""
    _deferred_ends[conversation_id] = turn_id, outcome
    while len(_deferred_ends) > MAX_CONVERSATIONS:
        del _deferred_ends[next(iter(_deferred_ends))]


def write_deferred_end(conversation_id: str) -> None:
    """Write the deferred end of a conversation, if any, which releases its run lock.

    Raises Error if the database still cannot be written.
    """
    if conversation_id in _deferred_ends:
        rows.finish_turn(conversation_id, *_deferred_ends[conversation_id])
        _deferred_ends.pop(conversation_id, None)


def _with_deferred_end(stored: list[Turn]) -> list[Turn]:
    """The stored turns, with the deferred end applied to its answer."""
    for turn in stored:
        turn_id, outcome = _deferred_ends.get(turn.conversation_id, ("", None))
        if outcome is not None and str(turn.pk) == turn_id:
            _finish(turn, outcome)
    return stored


def _finish(turn: Turn, outcome: Outcome) -> None:
    turn.status, turn.parts = outcome.status, list(outcome.parts)
    turn.error, turn.usage, turn.timing = outcome.error, outcome.usage, outcome.timing


@dataclass(frozen=True)
class ConversationState:
    """A conversation as it can be shown now.

    conversation: None if it does not exist, or is forbidden.
    turns: the stored turns, then the unsaved ones, oldest first.
    away: new turns are not stored, or the database cannot be read.
    forbidden: it belongs to another user.
    full: `away` because the disk is full.
    """

    conversation: Conversation | None
    turns: list[Turn]
    away: bool = False
    forbidden: bool = False
    full: bool = False


def load(conversation_id: str) -> ConversationState:
    """Load a conversation; only its unsaved turns if the database is unavailable.

    Raises Error if the database is locked.
    """
    entry = unsaved_conversations.get(conversation_id)
    unsaved = entry.conversation if entry else None
    with suppress(Error):
        write_deferred_end(conversation_id)
    try:
        row = Conversation.objects.filter(pk=conversation_id).first()
        mine = row is not None and current().may_see(row.owner_id)
        stored = queries.turns(conversation_id) if mine else []
    except Error:
        if not database_away():
            raise
        return _permitted(ConversationState(unsaved, turns(conversation_id), away=True))
    full = disk.has_no_room()
    both = [*_with_deferred_end(stored), *turns(conversation_id)]
    return _permitted(ConversationState(row or unsaved, both, away=full, full=full))


def _permitted(found: ConversationState) -> ConversationState:
    conversation = found.conversation
    if conversation is None or current().may_see(conversation.owner_id):
        return found
    return ConversationState(None, [], found.away, forbidden=True)


def turns(conversation_id: str) -> list[Turn]:
    """The unsaved turns, oldest first, with the running one.

    Empty for the conversation of another user, who may have chosen the same id meanwhile.
    """
    entry = unsaved_conversations.get(conversation_id)
    return list(entry.turns) if entry and current().may_see(entry.conversation.owner_id) else []


def all_turns(conversation_id: str) -> list[Turn]:
    """All turns, oldest first: the stored ones, then the unsaved ones. Raises NotFound, and Error
    if the database cannot be read."""
    with suppress(Error):
        write_deferred_end(conversation_id)
        recovery.recover_stale(conversation_id)
    unsaved = turns(conversation_id)
    try:
        return [*_with_deferred_end(queries.turns(conversation_id)), *unsaved]
    except NotFound:
        if not unsaved:
            raise
        return unsaved


def turns_page(conversation_id: str, limit: int = 50, cursor: Cursor | None = None) -> Page[Turn]:
    """As `queries.turns_page`, with the unsaved turns."""
    if not turns(conversation_id):
        return queries.turns_page(conversation_id, limit, cursor)
    finished = [
        turn
        for turn in reversed(all_turns(conversation_id))
        if turn.status != Turn.Status.RUNNING and (cursor is None or turn.created_at < cursor.at)
    ]
    return page_of(finished, "created_at", limit)


def discard(conversation_id: str) -> None:
    unsaved_conversations.pop(conversation_id, None)


def load_history(request: StartTurn) -> None:
    """Called before `start_turn`: load the messages of a stored conversation.

    Raises what `rows.check_open` raises. Does nothing if the database cannot be read.
    """
    try:
        row = Conversation.objects.filter(pk=request.conversation_id).first()
        if row is None:
            return
        rows.check_open(row, request.agent_name)
        stored = _with_deferred_end(queries.turns(request.conversation_id))
        history = queries.as_messages((turn.role, turn.parts) for turn in stored)
    except Error:
        return
    unsaved_conversations.setdefault(
        request.conversation_id, UnsavedConversation(row)
    ).stored = history


def start_turn(request: StartTurn, owner: str) -> StartedTurn:
    """As `rows.start_turn`. A run of this process that the database stores holds the lock, too."""
    if live_runs.of(request.conversation_id) is not None:
        raise leases.in_progress()
    entry = _conversation_for(request)
    flags = merged(entry.conversation.flags, request.flags)
    again, failed = _take_failed(request, entry)
    unsaved_history = queries.as_messages((turn.role, turn.parts) for turn in entry.turns)
    history = [*entry.stored, *unsaved_history]
    user_turn_at = max(now_ms(), entry.conversation.last_message_at + services.MILLISECOND)
    question, answer = rows.new_turns(request, owner, user_turn_at, again)
    if failed is not None:
        answer.pk = failed.pk  # so that pages replace it
    question.parent = entry.turns[-1].pk if entry.turns else entry.conversation.head
    entry.turns += [question, answer]
    _running[str(answer.pk)] = answer
    entry.conversation.last_message_at = answer.created_at
    entry.conversation.model = request.model
    entry.conversation.flags = flags
    return StartedTurn(question, answer, entry.conversation, history)


def _take_failed(request: StartTurn, entry: UnsavedConversation) -> tuple[Turn | None, Turn | None]:
    """Remove and return the question that is asked again, and its failed answer.

    Raises Unavailable DATABASE_UNAVAILABLE for every other branch.
    """
    if request.parent is None:
        return None, None
    match entry.turns[-2:]:
        case [question, answer] if str(question.pk) == request.parent and rows.has_failed_empty(
            answer
        ):
            del entry.turns[-2:]
            return question, answer
    message = "A branch needs the database, which cannot be written now."
    raise Unavailable(message, code="DATABASE_UNAVAILABLE")


def without_unsaved(request: StartTurn) -> StartTurn:
    """The request without a parent that only this process has: the database does not know it."""
    for turn in turns(request.conversation_id):
        if str(turn.pk) == request.parent:
            message = request.message or content(turn.parts)
            return replace(request, parent=None, message=message)
    return request


def _conversation_for(request: StartTurn) -> UnsavedConversation:
    entry = unsaved_conversations.pop(request.conversation_id, None)
    if entry is None:
        entry = UnsavedConversation(rows.new_conversation(request))
    # At the end: the first entry is the least recently used.
    unsaved_conversations[request.conversation_id] = entry
    while len(unsaved_conversations) > MAX_CONVERSATIONS:
        del unsaved_conversations[next(iter(unsaved_conversations))]
    rows.check_open(entry.conversation, request.agent_name)
    return entry


def keep_alive(turn_id: str, parts: Sequence[Part] | None) -> bool:
    if parts is not None and turn_id in _running:
        _running[turn_id].parts = list(parts)
    return True


def may_continue(turn_id: str) -> bool:
    return True


def name_thread(conversation_id: str, turn_id: str, thread_id: str) -> None:
    entry = unsaved_conversations.get(conversation_id)
    if entry is not None:
        entry.conversation.flags["threadId"] = thread_id


def finish_turn(conversation_id: str, turn_id: str, outcome: Outcome) -> None:
    _finish(_running.pop(turn_id), outcome)
