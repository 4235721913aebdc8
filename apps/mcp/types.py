"""What an endpoint is made of, as frozen values: its tools, and the call that a tool is told of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]
# report(message, done, total): passes progress on to the caller.
Report = Callable[[str, float | None, float | None], Awaitable[None]]


@dataclass(frozen=True)
class Annotations:
    """Hints for the client's user. Codex refuses tools without `readOnlyHint` under `never`."""

    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False

    def as_wire(self) -> JSON:
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


@dataclass(frozen=True)
class Call:
    """One call of a tool. When the caller goes away, the task that runs the tool is cancelled.

    `version` is the protocol revision ("2025-11-25"); `request_id` stands in every log line.
    `capabilities` are the client's own words, by name; a client of the handshake revisions has told
    them in another request, so for it they are empty.
    """

    request_id: str
    version: str
    report: Report
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    async def progress(
        self, message: str, done: float | None = None, total: float | None = None
    ) -> None:
        """Tell the caller how far the work is; says nothing to a caller who did not ask.

        `done` and `total` are counts of anything; without them, calls are numbered.
        """
        await self.report(message, done, total)


@dataclass(frozen=True)
class Contents:
    """An answer in MCP's own content items (images, resources), of a tool without output schema."""

    items: Sequence[JSON]


@dataclass(frozen=True)
class McpTool:
    """A tool of an endpoint.

    name, title: for programs and for people.
    description: for the client's model.
    input_schema, output_schema: JSON Schemas with an object at the root.
    run: called with the arguments of a call; returns a JSON object that satisfies `output_schema`,
        or Contents; raises types of `apps.core.errors`.
    annotations: hints for the client's user.
    checks_arguments: True if `run` checks its arguments itself. Otherwise they satisfy
        `input_schema` when `run` is called.
    """

    name: str
    title: str
    description: str
    input_schema: JSON
    output_schema: JSON | None
    run: Callable[[Mapping[str, Any], Call], Awaitable[JSON | Contents]]
    annotations: Annotations = Annotations()
    checks_arguments: bool = False

    def as_wire(self) -> JSON:
        """The tool's entry in the answer to tools/list."""
        wire = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": self.annotations.as_wire() | {"title": self.title},
        }
        return wire if self.output_schema is None else wire | {"outputSchema": self.output_schema}


async def always_open() -> None:
    """The gate of an endpoint that depends on nothing."""


@dataclass(frozen=True)
class McpEndpoint:
    """A server in the eyes of a client. `registry` and `gate` are asked at each request.

    `gate` raises Unavailable while the tools cannot be used; it guards tools/list and tools/call.
    `instructions` are read by the client's model before it has seen a tool. `tells_the_model`: a
    failed call is a result for the model whatever the revision, as a client of our own wants it.
    """

    name: str
    title: str
    instructions: str
    registry: Callable[[], Sequence[McpTool]]
    gate: Callable[[], Awaitable[None]] = always_open
    tool_errors_as_results: bool = False
