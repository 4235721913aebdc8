"""Fakes for the tests of agents: two tools over one repository, a provider, and a recorder."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.agents.events import (
    ChatEvent,
    ModelEvent,
    ReasoningDelta,
    Terminal,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from apps.agents.loop import run
from apps.agents.messages import Message, ToolResult
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest, Provider
from apps.core.errors import Conflict
from apps.core.types import JSON
from apps.embedding.static import MODEL_ID
from apps.tools.tool import Tool

QUESTION = "Where is the retry?"
LINES = ["def retry(times):", "    for n in range(times):", "        yield n * 2"]


def match(**changes: Any) -> JSON:
    """Return one entry of VectorSearch's results."""
    return {
        "repo": "acme",
        "relPath": "src/net.py",
        "containerPath": "/srv/acme/src/net.py",
        "hostPath": "/srv/acme/src/net.py",
        "chunk": "\n".join(LINES),
        "chunkId": "c1",
        "modelId": MODEL_ID,
        "score": 0.51,
        "lineCount": 3,
        "startLine": 12,
        "endLine": 14,
        "language": "python",
    } | changes


def found(*matches: JSON) -> JSON:
    return {"results": list(matches), "files": [], "modelId": MODEL_ID}


def tool(name: str, payload: JSON | Exception, calls: list[JSON] | None = None) -> Tool:
    """Return a tool that returns or raises `payload` and appends its arguments to `calls`."""

    def answer(arguments: Mapping[str, Any]) -> JSON:
        if calls is not None:
            calls.append(dict(arguments))
        if isinstance(payload, Exception):
            raise payload
        return payload

    properties = {"query": {"type": "string"}, "repository": {"type": "string"}}
    schema: JSON = {"type": "object", "properties": properties if name == "VectorSearch" else {}}
    return Tool(name, f"{name}, as a test has it.", schema, answer, name, {"type": "object"}, name)


TOOLS = (
    tool("ListIngestedRepositories", {"repos": [{"id": "acme"}], "lockedModelId": None}),
    tool("VectorSearch", found(match())),
)
NOTHING_INGESTED = (
    tool("VectorSearch", Conflict("run ingest before vector search", code="INGEST_REQUIRED")),
)


def chat_request(model: str, tools: Sequence[Tool] = TOOLS) -> ModelRequest:
    """Return a request with QUESTION for a model."""
    return ModelRequest(model, (Message("system", SYSTEM_PROMPT), Message("user", QUESTION)), tools)


def step_of(event: ToolStarted | ToolFinished) -> tuple[str, int]:
    """Return the id of the call and 0 for its start, 1 for its end."""
    if isinstance(event, ToolStarted):
        return event.call.id, 0
    return event.result.call.id, 1


@dataclass
class RecordedAnswer:
    """The events of an answer."""

    events: list[ChatEvent]

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, ReasoningDelta))

    @property
    def results(self) -> list[ToolResult]:
        return [e.result for e in self.events if isinstance(e, ToolFinished)]

    @property
    def end(self) -> Terminal:
        last = self.events[-1]
        assert isinstance(last, TurnFinished | TurnFailed | TurnStopped)
        return last

    @property
    def failure(self) -> TurnFailed:
        assert isinstance(self.end, TurnFailed), self.end
        return self.end

    def check(self) -> None:
        """Assert the rules that every answer follows (apps.agents.loop)."""
        assert isinstance(self.events[0], TurnStarted)
        terminal = [e for e in self.events if isinstance(e, TurnFinished | TurnFailed)]
        assert terminal == [self.events[-1]], "exactly one terminal event, and it is the last"
        started = [e.call.id for e in self.events if isinstance(e, ToolStarted)]
        assert len(set(started)) == len(started), "an id is used once in an answer"
        steps = [step_of(e) for e in self.events if isinstance(e, ToolStarted | ToolFinished)]
        assert sorted(steps) == sorted((id, n) for id in started for n in (0, 1))
        assert all(steps.index((id, 0)) < steps.index((id, 1)) for id in started)
        assert all(e.text for e in self.events if isinstance(e, TextDelta | ReasoningDelta))


async def record(provider: Provider, request: ModelRequest, max_rounds: int = 5) -> RecordedAnswer:
    """Run the loop to its end, check the events and return them."""
    recorded = RecordedAnswer([event async for event in run(provider, request, max_rounds)])
    recorded.check()
    return recorded


@dataclass
class StubProvider:
    """A provider that yields scripted events for each round and records its requests.

    rounds: the events of each round; an exception is raised. The last round repeats.
    closed: how many streams were closed.
    """

    rounds: Sequence[Sequence[ModelEvent | Exception]]
    requests: list[ModelRequest] = field(default_factory=list)
    closed: int = 0
    id: str = "stub"
    label: str = "Stub"

    async def origin(self) -> str:
        return ""

    async def availability(self) -> Availability:
        return Availability(available=True)

    async def models(self) -> Sequence[Model]:
        return [Model("m", "M")]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        events = self.rounds[min(len(self.requests), len(self.rounds) - 1)]
        self.requests.append(request)
        try:
            for event in events:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed += 1
