"""Codex: the real binary with a scripted Responses API and an MCP server for the test's tools."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from apps.agents.providers.codex.server import server_at
from apps.tools.tool import Tool
from tests.agents.fakes import NOTHING_INGESTED
from tests.agents.rigs.base import ERROR, HALF, SEARCHED, TIMEOUT, Backend, Rig, Scenario
from tests.stand_ins.mcp_server import MCPStandIn
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT
from tests.stand_ins.responses_scripts import Script, end, say
from tests.stand_ins.responses_server import ResponsesStandIn, write_config

FOUND = "It is in `acme/src/net.py:12-14`."


@dataclass
class CodexBackend(Backend):
    """A Codex home, the API in its config.toml, and the MCP server with its tools."""

    home: Path
    api: ResponsesStandIn
    mcp: MCPStandIn

    def set_tools(self, tools: Sequence[Tool]) -> None:
        self.mcp.tools = tools

    def add_text_model(self, pieces: Sequence[str]) -> str:
        deltas = chain.from_iterable(say(piece, len(piece)) for piece in pieces if piece)
        self.api.scripts["made up"] = Script([[*deltas, *end()]])
        return "made up"

    def idle(self) -> bool:
        return all(exchange.done.wait(30) for exchange in self.api.requests)


@contextmanager
def run_codex_backend(folder: Path) -> Iterator[CodexBackend]:
    """Run Codex until the block ends. Share it between tests: starting takes a second."""
    home = folder / "codex"
    with ResponsesStandIn() as api, MCPStandIn() as mcp:
        write_config(home, api.url)
        yield CodexBackend(home, api, mcp)
        server_at(home).close()


RIG = Rig(
    provider="codex",
    backend="codex_backend",
    in_turn=False,
    scenarios=(
        Scenario("text", "plain", PLAIN),
        Scenario("text in two messages", "two-messages", "First.\n\nSecond."),
        Scenario("thinking", "think", "Hello!", reasoning=f"{THOUGHT}\n\nSo be it."),
        Scenario("thinking aloud", "commentary", "Hello!", reasoning="Let me see."),
        Scenario("one tool", "tool", FOUND, tools=SEARCHED),
        Scenario(
            "one tool between thinking and answer",
            "slow-tool",
            FOUND,
            reasoning="I should look this up first.\n\nLet me look. ",
            tools=SEARCHED,
        ),
        Scenario(
            "several tools",
            "two-tools",
            FOUND,
            tools=(("ListIngestedRepositories", None), *SEARCHED),
        ),
        Scenario(
            "a tool that fails",
            "tool",
            "It is in no place at all.",
            tools=(("VectorSearch", "INGEST_REQUIRED"),),
            tools_offered=NOTHING_INGESTED,
        ),
        # Codex itself reports the unknown tool to its model and sends us no event.
        Scenario("an unknown tool", "unknown-tool", "No such tool."),
        Scenario("an empty answer", "empty", end=ERROR),
        Scenario("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
        Scenario("an error before: a server error", "status-500", end=ERROR),
        Scenario("an error before: too many requests", "status-429", end=ERROR),
        Scenario("an error before: a refused login", "status-401", end=ERROR, retryable=False),
        Scenario("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Scenario("an error before: no room left", "too-long", end=ERROR, retryable=False),
        Scenario("an error before: nothing left to spend", "no-quota", end=ERROR, retryable=False),
        Scenario("an error in the middle", "failed-middle", HALF, end=ERROR),
        Scenario("a malformed frame", "malformed", HALF, end=ERROR),
        Scenario("a cut connection", "cut-middle", HALF, end=ERROR),
        Scenario("silence from the start", "stall", end=TIMEOUT),
        Scenario("silence in the middle", "stall-middle", HALF, end=TIMEOUT),
    ),
    # The Responses API separates reasoning from text.
    markers=False,
    slow=True,
)
