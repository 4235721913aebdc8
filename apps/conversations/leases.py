"""A command's hold on its conversation, from the first step to the last.

A run takes the turn lock first and then asks here, within one transaction, so of a command and
another run that begin together exactly one goes on. A hold ends with its command, or is ended for
it when its process is gone.
"""

from collections.abc import Mapping
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.conversations.models import CommandRun, Turn
from apps.conversations.types import StartTurn
from apps.core.errors import Conflict

STALE = timedelta(seconds=30)
RUNNING = CommandRun.Status.RUNNING

# Why a command ended between two steps, as its last step tells it.
STOPPED: Mapping[str, str] = {
    "code": "CANCELLED",
    "message": "The command was stopped; the steps after this one were not run.",
}
INTERRUPTED: Mapping[str, str] = {
    "code": "INTERRUPTED",
    "message": "The server stopped; the steps after this one were not run.",
}


def in_progress() -> Conflict:
    """The refusal of a second run."""
    return Conflict("Conversation already has an active run.", code="RUN_IN_PROGRESS")


def claim(request: StartTurn, owner: str) -> None:
    """Let a run begin that holds the turn lock, noting where it is a command's how far that is.

    Raises Conflict RUN_IN_PROGRESS while a command of somebody else's is under way, and
    COMMAND_STOPPED where this one's has been told to stop.
    """
    held = CommandRun.objects.filter(conversation=request.conversation_id, status=RUNNING)
    agent = request.agent
    own = agent.command_run if agent else ""
    others = held.exclude(pk=own) if own else held
    if others.exists():
        raise in_progress()
    if not own or request.command is None:
        return
    step = request.command["stepIndex"]
    if not CommandRun.objects.filter(pk=own).exists():
        _begin(request, own, owner)
    elif not held.filter(pk=own, cancel_requested=False).update(step=step, begun_at=timezone.now()):
        raise Conflict("The command was told to stop.", code="COMMAND_STOPPED")


def _begin(request: StartTurn, own: str, owner: str) -> None:
    command = request.command or {}
    try:
        with transaction.atomic():
            CommandRun.objects.create(
                pk=own,
                conversation_id=request.conversation_id,
                name=command["name"],
                step=command["stepIndex"],
                steps=command["totalSteps"],
                owner=owner,
            )
    except IntegrityError as error:
        raise in_progress() from error


def wanted(own: str) -> bool:
    """Whether a command may go on: nobody stopped it, and its conversation is still there."""
    return CommandRun.objects.filter(pk=own, status=RUNNING, cancel_requested=False).exists()


def request_cancel(conversation_id: str) -> bool:
    """Ask a conversation's command to begin no further step; False where none is under way."""
    running = CommandRun.objects.filter(conversation=conversation_id, status=RUNNING)
    return bool(running.update(cancel_requested=True))


def end(own: str, status: str, note: Mapping[str, str] | None = None) -> bool:
    """Let go. `note` says on the last step's answer why no other followed.

    False: it had ended already.
    """
    ended = CommandRun.objects.filter(pk=own, status=RUNNING)
    row = ended.first()
    if row is None or not ended.update(status=status):
        return False
    if note and row.step < row.steps:
        _note(row, note)
    return True


def _note(row: CommandRun, note: Mapping[str, str]) -> None:
    """A step that failed or was stopped tells it by itself; one that went well does not."""
    answers = Turn.objects.filter(conversation=row.conversation_id, role=Turn.Role.ASSISTANT)
    last = answers.order_by("-created_at").first()
    if last is not None and last.command and last.status == Turn.Status.OK:
        answers.filter(pk=last.pk).update(command={**last.command, "ended": dict(note)})


def stale() -> QuerySet[CommandRun]:
    """Commands that began their last step long ago, and whose answer has been over for as long."""
    answering = Turn.objects.filter(
        conversation=OuterRef("conversation"), status=Turn.Status.RUNNING
    )
    then = timezone.now() - STALE
    late = Q(begun_at__lt=then, conversation__last_message_at__lt=then)
    return CommandRun.objects.filter(late, ~Exists(answering), status=RUNNING)
