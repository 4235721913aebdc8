"""Long calls as tasks: the extension `io.modelcontextprotocol/tasks` of 2026-07-28 (SEP-2663).

A client that declares the extension gets a task in place of the result of a long call, asks for it
with tasks/get and ends it with tasks/cancel. Closing a connection does not end a task. Tasks are in
the memory of this process until their time is over; a restart loses them. The id of a task cannot
be guessed, and only the principal that started it, at the same endpoint, can use it.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.core.concurrency.tasks import create_task
from apps.core.principal import current
from apps.core.types import JSON
from apps.core.values.times import wire_time
from apps.mcp.context_methods import Handler
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.specification import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from apps.mcp.types import McpEndpoint, Work
from apps.mcp.wire import Message, RpcError

EXTENSION = "io.modelcontextprotocol/tasks"
# The time that a task may work, and the time from its start until its result is discarded.
WORK_SECONDS = 2 * 3600.0
KEPT_SECONDS = WORK_SECONDS + 3600
POLL_MS = 2_000
# Further calls wait for their result, as those of other clients do.
MAX_TASKS = 256

Owner = tuple[str, str, str]


@dataclass
class Task:
    """A call at work, or its answer.

    answer: the JSON-RPC answer to the call; None until it has ended, and if it was cancelled.
    """

    id: str
    owner: Owner
    created: datetime
    updated: datetime
    message: str = ""
    answer: JSON | None = None
    work: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def status(self) -> str:
        if self.answer is not None:
            return "failed" if "error" in self.answer else "completed"
        return "cancelled" if self.work is not None and self.work.done() else "working"

    @property
    def is_expired(self) -> bool:
        return datetime.now(UTC) >= self.created + timedelta(seconds=KEPT_SECONDS)

    def as_wire(self) -> JSON:
        """The task without its outcome, as the call that made it answers."""
        wire = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": wire_time(self.created),
            "lastUpdatedAt": wire_time(self.updated),
            "ttlMs": int(KEPT_SECONDS * 1000),
            "pollIntervalMs": POLL_MS,
        }
        return wire | ({"statusMessage": self.message} if self.message else {})

    def with_outcome(self) -> JSON:
        """The task with `result` or `error`, as tasks/get answers."""
        answer = self.answer or {}
        return self.as_wire() | {key: answer[key] for key in ("result", "error") if key in answer}


# By id, oldest first.
live_tasks: dict[str, Task] = {}


def capability(endpoint: McpEndpoint) -> JSON:
    is_offered = any(tool.takes_long for tool in endpoint.registry())
    return {"extensions": {EXTENSION: {}}} if is_offered else {}


def is_declared(protocol: ProtocolVersion) -> bool:
    """Whether the client knows tasks; only stateless requests declare it."""
    extensions = protocol.capabilities.get("extensions")
    return protocol.modern and isinstance(extensions, Mapping) and EXTENSION in extensions


def require_declared(protocol: ProtocolVersion) -> None:
    """Raise RpcError -32021 unless the client knows tasks."""
    if not is_declared(protocol):
        needed: JSON = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        problem = f"Declare the extension {EXTENSION} to use tasks."
        raise RpcError(MISSING_REQUIRED_CLIENT_CAPABILITY, problem, data=needed)


def has_room() -> bool:
    """Discard tasks whose time is over. Return whether one more can be started."""
    for task in [task for task in live_tasks.values() if task.is_expired]:
        _discard(task)
    return len(live_tasks) < MAX_TASKS


def start(endpoint: McpEndpoint, answer: Work) -> JSON:
    """Start a task that does `answer`, and return the result of the call that makes it.

    answer: returns the JSON-RPC answer
    """
    now = datetime.now(UTC)
    task = Task(secrets.token_urlsafe(24), owner_of(endpoint), now, now)

    async def report(message: str, done: float | None, total: float | None) -> None:
        task.message, task.updated = message, datetime.now(UTC)

    async def work() -> None:
        try:
            task.answer = await answer(report)
        finally:
            task.message, task.updated = "", datetime.now(UTC)

    # The task outlives the request's context, which holds the principal and the request id.
    task.work = create_task(work(), context=copy_context())
    live_tasks[task.id] = task
    return {"resultType": "task"} | task.as_wire()


def _discard(task: Task) -> None:
    del live_tasks[task.id]
    if task.work is not None:
        task.work.cancel()


def owner_of(endpoint: McpEndpoint) -> Owner:
    principal = current()
    return endpoint.name, principal.kind, str(principal.user_id)


def _find(endpoint: McpEndpoint, protocol: ProtocolVersion, params: Mapping[str, Any]) -> Task:
    """The task that a request names. Raises RpcError if the caller has none with this id."""
    require_declared(protocol)
    id = params.get("taskId")
    task = live_tasks.get(id) if isinstance(id, str) else None
    if task is None or task.is_expired or task.owner != owner_of(endpoint):
        raise RpcError(INVALID_PARAMS, "Unknown task. It may have expired: call the tool again.")
    return task


# --- methods --------------------------------------------------------------------------------------


async def _get(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    return _find(endpoint, protocol, message.params).with_outcome()


async def _cancel(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    task = _find(endpoint, protocol, message.params)
    if task.work is not None:
        # No effect on a task that has ended.
        task.work.cancel()
    return {}


async def _update(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    """Accept answers to questions of a task. No task asks, so they are ignored (SEP-2663)."""
    _find(endpoint, protocol, message.params)
    return {}


# Known to every endpoint: it takes time to read which tools one has.
METHODS: Mapping[str, Handler] = {
    "tasks/get": _get,
    "tasks/cancel": _cancel,
    "tasks/update": _update,
}
