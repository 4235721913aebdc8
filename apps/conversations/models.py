"""Conversations, their turns, the commands that run in them, and links to copies of them.

A running answer is a Turn with status `running`. A partial unique constraint on it is the run lock:
the database allows one live run per conversation (contract.md §6.3).
"""

import re
import uuid
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

ID_PATTERN = r"^[A-Za-z0-9._:-]{1,128}\Z"
VALID_ID = re.compile(ID_PATTERN)
DEFAULT_TITLE = "Untitled conversation"


def now_ms() -> datetime:
    """The current time in whole milliseconds, as on the wire, so cursors compare exactly."""
    now = timezone.now()
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class Source(models.TextChoices):
    REST = "REST"
    MCP = "MCP"


class Conversation(models.Model):
    """A thread of turns.

    id: chosen by the client, or a UUID4.
    agent_name: the agent that owns it; "" for the chat.
    flags: settings of the provider and the page, such as `threadId` and `scope`.
    owner: the user who created it; None without authentication.
    last_message_at: also the clock of the conversation: a conditional UPDATE takes the time of each
        turn from it, so times within a conversation strictly increase (see `services`).
    head: id of the last turn of the branch that is followed (`branches`); None without turns. It is
        no foreign key, nor is `Turn.parent`: the tables would refer to each other, and a delete
        would read every turn.
    archived_at: None for an active conversation.
    pinned: the list of conversations shows it first.
    tags: one a line, with a newline before the first and after the last (`tags`).
    """

    id = models.CharField(primary_key=True, max_length=128, validators=[RegexValidator(ID_PATTERN)])
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=255)
    title = models.CharField(max_length=255, default=DEFAULT_TITLE)
    agent_name = models.CharField(max_length=255, blank=True, default="")
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.REST)
    flags = models.JSONField(blank=True, default=dict)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    last_message_at = models.DateTimeField(default=now_ms)
    head = models.UUIDField(null=True, blank=True, editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    pinned = models.BooleanField(default=False)
    tags = models.TextField(blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=now_ms)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-last_message_at", "-id"]
        indexes = [
            models.Index(fields=["archived_at", "-last_message_at"]),
            models.Index(fields=["agent_name", "archived_at", "-last_message_at"]),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def archived(self) -> bool:
        return self.archived_at is not None

    @property
    def tag_names(self) -> list[str]:
        return self.tags.split()


class Turn(models.Model):
    """One message of a conversation.

    parent: id of the turn before it in its branch; None for a first one.
    flags: what belongs to this turn of the conversation's flags: `scope` of a question, `threadId`
        of an answer.
    siblings: ids of the turns with its parent, itself among them, oldest first; as
        `queries.turns` sets it.
    parts: the content (see `parts.py`).
    error: `{code, message}` of a failed turn.
    usage, timing: as in `types.Outcome`.
    rating: what a reader thinks of an answer; None if nobody has rated it.
    command: `{name, stepIndex, totalSteps, ended?}` of a command's step.
    inflight_id: id of the run on the wire.
    text, repositories: what `searching` finds; written with the parts.

    Only while status is `running`:

    owner: signature of the process that runs it (`recovery.owner`).
    heartbeat_at: its last sign of life.
    cancel_requested: a Stop was requested.
    """

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        SYSTEM = "system"

    class Status(models.TextChoices):
        OK = "ok"
        STOPPED = "stopped"
        FAILED = "failed"
        RUNNING = "running"

    class Rating(models.IntegerChoices):
        GOOD = 1, "Good answer"
        BAD = -1, "Bad answer"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns")
    parent = models.UUIDField(null=True, blank=True, editable=False)
    flags = models.JSONField(blank=True, default=dict)
    role = models.CharField(max_length=16, choices=Role.choices)
    parts = models.JSONField(default=list)
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=255)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.REST)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.OK)
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(null=True, blank=True)
    timing = models.JSONField(null=True, blank=True)
    rating = models.SmallIntegerField(choices=Rating, null=True, blank=True)
    command = models.JSONField(null=True, blank=True)
    inflight_id = models.CharField(max_length=128, blank=True, default="")
    created_at = models.DateTimeField(default=now_ms)
    text = models.TextField(blank=True, default="")
    repositories = models.TextField(blank=True, default="")
    owner = models.CharField(max_length=64, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)

    siblings: Sequence[uuid.UUID] = ()

    class Meta:
        ordering = ["created_at", "id"]
        # It has all that `branches` reads, so that the parts are not read.
        indexes = [models.Index(fields=["conversation", "created_at", "id", "parent"])]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="running"),
                name="one_live_run_per_conversation",
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()} turn"


class CommandRun(models.Model):
    """A command of an agent and its progress. Its steps are turns.

    While its status is `running`, a partial unique constraint makes it a lock: no other run may
    start in the conversation between two steps (`leases`).

    id: chosen by the caller.
    step: the present step, from 1; steps: their number.
    owner: signature of the process that runs it. During a step, the turn has the heartbeat.
    begun_at: start of the present step.
    """

    class Status(models.TextChoices):
        RUNNING = "running"
        OK = "ok"
        STOPPED = "stopped"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="command_runs"
    )
    name = models.CharField(max_length=255)
    step = models.PositiveIntegerField(default=1)
    steps = models.PositiveIntegerField()
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING)
    owner = models.CharField(max_length=64)
    begun_at = models.DateTimeField(default=timezone.now)
    cancel_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now_ms)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="running"),
                name="one_live_command_per_conversation",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.conversation_id}"


class Share(models.Model):
    """A copy of a conversation that a link opens (`sharing`).

    token_hash: SHA-256 of the token in the link, in hex. The token is not stored.
    creator: the user who made it, with whom it is deleted; None without authentication.
    title, html: the conversation when it was made (`renderers.standalone`).
    expires_at: from then on the link opens nothing.
    """

    token_hash = models.CharField(primary_key=True, max_length=64, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE)
    creator = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE
    )
    title = models.CharField(max_length=255)
    html = models.TextField()
    created_at = models.DateTimeField(default=now_ms)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.title


class Preset(models.Model):
    """A text that a person sends again and again, by its name.

    owner: the user who saved it; None without authentication.
    key: owner and name without regard to case, so that a name is unique for its owner. No
        constraint of two columns is: databases take each None for another owner.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE
    )
    name = models.CharField(max_length=60)
    text = models.TextField()
    key = models.CharField(max_length=255, unique=True, editable=False)

    class Meta:
        ordering = ["key"]

    def __str__(self) -> str:
        return self.name
