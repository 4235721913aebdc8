"""The values that define an endpoint: its tools, resources and prompts; the call of a tool."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.core.types import JSON

# report(message, done, total): sends progress to the client.
Report = Callable[[str, float | None, float | None], Awaitable[None]]
# work(report): does what a request asks for, and returns the answer or its `result`.
Work = Callable[[Report], Awaitable[JSON]]

# A field of an answer: what its client may ask the user. It is not for the model.
QUESTION = "_question"

# The longest arguments, in characters: a question or an instruction, a name, a path of a folder.
MAX_TEXT, MAX_NAME, MAX_FOLDER = 100_000, 255, 10_000


@dataclass(frozen=True)
class Annotations:
    """The tool annotations of the MCP specification: hints for the client's user.

    Codex refuses tools without `readOnlyHint` if its approval policy is `never`.
    """

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
class Workspace:
    """Where a client works, as its request says.

    folders: absolute paths, or ids of repositories; empty if it does not say
    may_ingest: it is the bridge of the user who runs codeinfo, which may have a folder ingested
    consent: to that: "auto", "ask" (a question comes first) or "yes" (it is answered)
    """

    folders: tuple[str, ...] = ()
    may_ingest: bool = False
    consent: str = "auto"


@dataclass(frozen=True)
class Call:
    """One call of a tool. If the client disconnects, the task that runs the tool is cancelled.

    version: the protocol revision, such as "2025-11-25".
    report: sends progress to the client; does nothing if the client did not request progress.
    capabilities: the client's capabilities by name. Handshake revisions state them in another
        request, so they are empty there.
    workspace: where the client works.
    answers: the client's answers to the questions of an InputRequired, by their names.
    """

    version: str
    report: Report
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    workspace: Workspace = Workspace()
    answers: Mapping[str, Any] = field(default_factory=dict)

    async def progress(
        self, message: str, done: float | None = None, total: float | None = None
    ) -> None:
        """Report progress. Without `done` the reports are numbered.

        done, total: counts in one unit of the tool's choice, such as files.
        """
        await self.report(message, done, total)


@dataclass(frozen=True)
class Contents:
    """The MCP content items (images, resources) that a tool without output schema returns."""

    items: Sequence[JSON]


@dataclass(frozen=True)
class InputRequired:
    """Questions to the user, in place of a result (2026-07-28): texts to agree to, by their names.
    The client calls again with the answers."""

    questions: Mapping[str, str]


@dataclass(frozen=True)
class McpTool:
    """A tool of an endpoint.

    name, title: for programs and for people.
    description: for the client's model.
    need: what to use it for, in the instructions of the endpoint; "": they do not say.
    input_schema, output_schema: JSON Schemas with an object at the root.
    run: called with the arguments of a call; returns a JSON object that satisfies `output_schema`,
        or Contents, or InputRequired; raises types of `apps.core.errors`.
    annotations: hints for the client's user.
    checks_arguments: True if `run` checks its arguments itself. Otherwise they satisfy
        `input_schema` when `run` is called.
    takes_long: True if a call can take minutes. It runs as a task for clients that know tasks.
    unlisted: further arguments, by name, that are accepted and not in the list of tools.
    links: called with what `run` returned; returns the URIs of the resources that its rows quote.
    """

    name: str
    title: str
    description: str
    input_schema: JSON
    output_schema: JSON | None
    run: Callable[[Mapping[str, Any], Call], Awaitable[JSON | Contents | InputRequired]]
    need: str = ""
    annotations: Annotations = Annotations()
    checks_arguments: bool = False
    takes_long: bool = False
    unlisted: JSON = field(default_factory=dict)
    links: Callable[[JSON], Sequence[str]] | None = None

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


# --- resources, prompts, completion ---------------------------------------------------------------


@dataclass(frozen=True)
class Completion:
    """Values that an argument can take.

    values: at most 100, best first.
    total: how many there are in all.
    """

    values: Sequence[str]
    total: int


# completer(beginning, other arguments): values for an argument, of which the client has a part.
Completer = Callable[[str, Mapping[str, str]], Awaitable[Completion]]


@dataclass(frozen=True)
class ResourceTemplate:
    """URIs that a client can make (RFC 6570).

    completers: by the name of a variable.
    """

    uri_template: str
    name: str
    title: str
    description: str
    completers: Mapping[str, Completer] = field(default_factory=dict)

    def as_wire(self) -> JSON:
        """The template's entry in the answer to resources/templates/list."""
        return {
            "uriTemplate": self.uri_template,
            "name": self.name,
            "title": self.title,
            "description": self.description,
        }


@dataclass(frozen=True)
class ResourcePage:
    """A part of the list of resources. `cursor` requests the next part; None if there is none."""

    resources: Sequence[JSON]
    cursor: str | None = None


@dataclass(frozen=True)
class McpResources:
    """The resources of an endpoint.

    page: called with a cursor, or None for the first page; raises InvalidInput for a cursor that
        it did not return.
    read: called with a URI; returns `contents`, at least one; raises NotFound and InvalidInput.
    topic: of the hub, for notices that the list may have changed; "" if it never changes.
    version: returns a value that changes with the list.
    """

    page: Callable[[str | None], Awaitable[ResourcePage]]
    read: Callable[[str], Awaitable[Sequence[JSON]]]
    templates: Sequence[ResourceTemplate] = ()
    topic: str = ""
    version: Callable[[], Awaitable[object]] | None = None


@dataclass(frozen=True)
class PromptArgument:
    """An argument of a prompt, which a person fills in. Its value is a string."""

    name: str
    title: str
    description: str
    required: bool = False
    max_length: int = MAX_TEXT
    completer: Completer | None = None

    def as_wire(self) -> JSON:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "required": self.required,
        }


@dataclass(frozen=True)
class McpPrompt:
    """A prompt that a person chooses.

    messages: called with the arguments, which have the required names and no unknown ones; returns
        the messages; raises InvalidInput and NotFound.
    """

    name: str
    title: str
    description: str
    arguments: Sequence[PromptArgument]
    messages: Callable[[Mapping[str, str]], Awaitable[Sequence[JSON]]]

    def as_wire(self) -> JSON:
        """The prompt's entry in the answer to prompts/list."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [argument.as_wire() for argument in self.arguments],
        }


# --- endpoints ------------------------------------------------------------------------------------


async def always_open(arguments: Mapping[str, Any]) -> None:
    """The gate of an endpoint that is always available."""


@dataclass(frozen=True)
class McpEndpoint:
    """A server as a client sees it.

    name, title: as in `serverInfo`.
    legacy_name: its name with CODEINFO_MCP_LEGACY_NAMES.
    instructions: text for the client's model, read before the tools.
    registry: called at each request; returns the tools.
    gate: called before tools/list, with {}, and tools/call, with its arguments; raises Unavailable
        if the tools cannot be used.
    tool_errors_as_results: every failed call is a result for the model, in every revision.
    resources, prompts: what it offers besides tools; None and empty: these methods are unknown.
    """

    name: str
    title: str
    instructions: str
    registry: Callable[[], Sequence[McpTool]]
    legacy_name: str
    gate: Callable[[Mapping[str, Any]], Awaitable[None]] = always_open
    tool_errors_as_results: bool = False
    resources: McpResources | None = None
    prompts: Sequence[McpPrompt] = ()
