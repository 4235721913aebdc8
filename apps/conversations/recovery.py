"""Mark the runs of dead processes as interrupted; their saved parts stay.

A process signs its runs as `<host>/<pid>/<nonce>`. A dead process of this host is detected by its
pid, one of another host by a heartbeat older than 30 seconds (STALE).
"""

import logging
import os
import socket
import uuid

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.agents.events import TurnFailed
from apps.conversations import leases, searching, services
from apps.conversations.branches import Tree
from apps.conversations.flags import of_branch
from apps.conversations.models import CommandRun, Conversation, Turn
from apps.conversations.parts import Transcript
from apps.conversations.types import Outcome
from apps.core.concurrency.hub import hub
from apps.core.system import posix

logger = logging.getLogger("codeinfo.conversations")

STALE = leases.STALE
INTERRUPTED = TurnFailed("INTERRUPTED", "The server stopped before the answer was complete.")

NONCE = uuid.uuid4().hex[:12]


def owner() -> str:
    """The signature of this process."""
    return f"{socket.gethostname()[:32]}/{os.getpid()}/{NONCE}"


def recover() -> int:
    """Called at start-up: mark every run of a dead process. Returns their number."""
    running = Turn.objects.filter(status=Turn.Status.RUNNING)
    dead = [turn.pk for turn in running.only("owner") if _is_dead(turn.owner)]
    marked = _interrupt(running.filter(pk__in=dead))
    commands = CommandRun.objects.filter(status=CommandRun.Status.RUNNING)
    orphaned = [row.pk for row in commands.only("owner") if _is_dead(row.owner)]
    _release(commands.filter(pk__in=orphaned))
    return marked + recover_stale()


def recover_stale(conversation_id: str = "") -> int:
    """Mark the runs whose heartbeat is stale: that of a conversation, or all. Returns their
    number."""
    chosen = {"conversation": conversation_id} if conversation_id else {}
    running = Turn.objects.filter(status=Turn.Status.RUNNING, **chosen)
    is_stale = Q(heartbeat_at=None) | Q(heartbeat_at__lt=timezone.now() - STALE)
    marked = _interrupt(running.filter(is_stale))
    _release(leases.stale().filter(**chosen))
    return marked


def _interrupt(turns: QuerySet[Turn]) -> int:
    return sum(_mark_interrupted(turn) for turn in turns)


def _release(commands: QuerySet[CommandRun]) -> None:
    for row in commands:
        leases.end(str(row.pk), CommandRun.Status.FAILED, leases.INTERRUPTED)


def _mark_interrupted(turn: Turn) -> bool:
    transcript = Transcript(turn.parts)
    transcript.apply(INTERRUPTED)
    # Conditional: a run that ended meanwhile keeps its end.
    end = Outcome.of(INTERRUPTED)
    marked = Turn.objects.filter(pk=turn.pk, status=Turn.Status.RUNNING).update(
        status=end.status,
        error=end.error,
        parts=transcript.parts,
        **searching.columns(transcript.parts),
    )
    if marked:
        _follow(turn)
        services.changed(turn.conversation_id)
        hub.notify(f"conversation:{turn.conversation_id}")
        context = {"conversationId": turn.conversation_id, "turnId": str(turn.pk)}
        logger.warning("chat run interrupted", extra={"context": context})
    return bool(marked)


def _follow(turn: Turn) -> None:
    """Follow an interrupted answer, if its process was killed between its turns and the head. That
    needs a database without transactions."""
    tree = Tree.read(turn.conversation_id)
    if turn.pk not in tree.branch(tree.head):
        rows = Conversation.objects.filter(pk=turn.conversation_id)
        for flags in rows.values_list("flags", flat=True):
            rows.update(head=turn.pk, flags=of_branch(flags, turn.flags))


def _is_dead(signature: str) -> bool:
    """Return True for the signature of a dead process of this host."""
    host, _, rest = signature.partition("/")
    pid, _, nonce = rest.partition("/")
    if host != socket.gethostname()[:32] or not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return nonce != NONCE
    return not posix.is_running(int(pid))
