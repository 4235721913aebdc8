"""The lock of a command on its conversation, from the first step to the last (contract.md §6.3).

A run takes the turn lock first and then calls `claim`, within one transaction. So of a command and
another run that start together exactly one continues. The lock ends with the command, or by
`recovery` if its process is dead.
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

# Why a command ended between two steps; stored with its last step.
STOPPED: Mapping[str, str] = {
    "code": "CANCELLED",
    "message": "The command was stopped; the steps after this one were not run.",
}
INTERRUPTED: Mapping[str, str] = {
    "code": "INTERRUPTED",
    "message": "The server stopped; the steps after this one were not run.",
}


def in_progress() -> Conflict:
    """The error of a second run in a conversation."""
    return Conflict("Conversation already has an active run.", code="RUN_IN_PROGRESS")


def check_idle(conversation_id: str) -> None:
    """Raise Conflict RUN_IN_PROGRESS if a run or a command is running in a conversation."""
    for rows in (Turn.objects, CommandRun.objects):
        if rows.filter(conversation=conversation_id, status=RUNNING).exists():
            raise in_progress()


def claim(request: StartTurn, owner: str) -> None:
    """Called with the turn lock held: check that a run may start, and save its command's step.

    Raises Conflict RUN_IN_PROGRESS if another command is running in the conversation, and
    COMMAND_STOPPED if a Stop of this command was requested.
    """
    running = CommandRun.objects.filter(conversation=request.conversation_id, status=RUNNING)
    agent = request.agent
    command_run = agent.command_run if agent else ""
    others = running.exclude(pk=command_run) if command_run else running
    if others.exists():
        raise in_progress()
    if not command_run or request.command is None:
        return
    step = request.command["stepIndex"]
    if not CommandRun.objects.filter(pk=command_run).exists():
        _begin(request, command_run, owner)
    elif not running.filter(pk=command_run, cancel_requested=False).update(
        step=step, begun_at=timezone.now()
    ):
        raise Conflict("The command was told to stop.", code="COMMAND_STOPPED")


def _begin(request: StartTurn, command_run: str, owner: str) -> None:
    command = request.command or {}
    try:
        with transaction.atomic():
            CommandRun.objects.create(
                pk=command_run,
                conversation_id=request.conversation_id,
                name=command["name"],
                step=command["stepIndex"],
                steps=command["totalSteps"],
                owner=owner,
            )
    except IntegrityError as error:
        raise in_progress() from error


def may_continue(command_run: str) -> bool:
    """Return False if a command was stopped or its conversation deleted."""
    return CommandRun.objects.filter(
        pk=command_run, status=RUNNING, cancel_requested=False
    ).exists()


def request_cancel(conversation_id: str) -> bool:
    """Request that a command starts no further step. Returns False if none is running."""
    running = CommandRun.objects.filter(conversation=conversation_id, status=RUNNING)
    return bool(running.update(cancel_requested=True))


def end(command_run: str, status: str, note: Mapping[str, str] | None = None) -> bool:
    """End a command and release its lock. Returns False if it had ended already.

    note: `{code, message}`, saved with the last answer if steps are left.
    """
    ended = CommandRun.objects.filter(pk=command_run, status=RUNNING)
    row = ended.first()
    if row is None or not ended.update(status=status):
        return False
    if note and row.step < row.steps:
        _note_end(row, note)
    return True


def _note_end(row: CommandRun, note: Mapping[str, str]) -> None:
    """Save `note` with the last answer if that succeeded; other answers state their end."""
    answers = Turn.objects.filter(conversation=row.conversation_id, role=Turn.Role.ASSISTANT)
    last = answers.order_by("-created_at").first()
    if last is not None and last.command and last.status == Turn.Status.OK:
        answers.filter(pk=last.pk).update(command={**last.command, "ended": dict(note)})


def stale() -> QuerySet[CommandRun]:
    """Commands without a running answer whose last step started more than STALE ago."""
    answering = Turn.objects.filter(
        conversation=OuterRef("conversation"), status=Turn.Status.RUNNING
    )
    then = timezone.now() - STALE
    late = Q(begun_at__lt=then, conversation__last_message_at__lt=then)
    return CommandRun.objects.filter(late, ~Exists(answering), status=RUNNING)
