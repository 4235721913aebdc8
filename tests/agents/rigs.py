"""Each provider with the stage it plays on. A new provider joins the conformance suite by a rig."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.agents.providers.base import ModelRequest
from apps.retrieval.tools import Tool
from codeinfo.errors import NotFound, Unavailable
from tests.agents.cast import NOTHING_INGESTED, TOOLS, asked, found, match, tool
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT

End = Literal["finished", "PROVIDER_ERROR", "PROVIDER_TIMEOUT"]
SLOW_ANSWER = "It is in `acme/src/net.py:12-14`. " + " ".join(
    f"Sentence {n} of a slow answer." for n in range(1, 26)
)


@dataclass(frozen=True)
class Play:
    """What a provider is made to do, and all that must come of it.

    `text` is the whole visible text, or a tuple of pieces that occur in this order. `tools` has
    the error code of each call, None where it went well.
    """

    provider: str
    scene: str
    model: str
    text: str | tuple[str, ...] = ""
    reasoning: str = ""
    tools: tuple[tuple[str, str | None], ...] = ()
    end: End = "finished"
    retryable: bool = True
    offered: Sequence[Tool] = TOOLS

    @property
    def request(self) -> ModelRequest:
        return asked(self.model, self.offered)

    def __str__(self) -> str:
        return f"{self.provider}: {self.scene}"


def openai(scene: str, model: str, text: str = "", **more: object) -> Play:
    return Play("openai", scene, model, text, **more)  # type: ignore[arg-type]


def builtin(scene: str, offered: Sequence[Tool], *text: str, code: str | None = None) -> Play:
    tools = (("VectorSearch", code),)
    return Play("builtin", scene, "search", text, tools=tools, offered=offered)


SEARCHED = (("VectorSearch", None),)
FAILED: dict[str, object] = {"end": "PROVIDER_ERROR"}
FINAL: dict[str, object] = {"end": "PROVIDER_ERROR", "retryable": False}
HALF = "Half an ans"

PLAYS = [
    openai("text", "plain", PLAIN),
    openai("thinking between tags", "think", "Hello!", reasoning=THOUGHT),
    openai("thinking in channels", "harmony", "Hello!", reasoning=THOUGHT),
    openai("thinking in a field", "reasoning", "Hello!", reasoning=THOUGHT),
    openai("thinking in another field", "reasoning-field", "Hello!", reasoning=THOUGHT),
    openai("thinking that never ends", "think-open", reasoning=THOUGHT, **FAILED),
    openai("one tool", "tool", SLOW_ANSWER, tools=SEARCHED),
    openai(
        "thinking, a tool, an answer",
        "slow-tool",
        f"Let me look. {SLOW_ANSWER}",
        reasoning="I should look this up first.",
        tools=SEARCHED,
    ),
    openai(
        "several tools",
        "two-tools",
        SLOW_ANSWER,
        tools=(("ListIngestedRepositories", None), *SEARCHED),
    ),
    openai(
        "an unknown tool",
        "unknown-tool",
        "There is no such tool.",
        tools=(("DeleteEverything", "UNKNOWN_TOOL"),),
    ),
    openai(
        "arguments that are not JSON",
        "bad-arguments",
        "My arguments were wrong.",
        tools=(("VectorSearch", "VALIDATION_FAILED"),),
    ),
    openai("searching without end", "endless-tools", tools=SEARCHED * 5, **FAILED),
    openai("an empty answer", "empty", **FAILED),
    openai("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
    openai("no token counts", "no-usage", "Hello!"),
    openai("a refused key", "status-401", **FINAL),
    openai("a forbidden model", "status-403", **FINAL),
    openai("an unknown model", "nobody", **FINAL),
    openai("a refused request", "status-400", **FINAL),
    openai("a redirect", "status-307", **FINAL),
    openai("too many requests", "status-429", **FAILED),
    openai("a server error", "status-500", **FAILED),
    openai("an error in the middle", "error-middle", HALF, **FAILED),
    openai("a malformed frame", "malformed", HALF, **FAILED),
    openai("a cut connection", "cut-middle", HALF, **FAILED),
    openai("a cut at the output limit", "length", HALF, **FAILED),
    openai("a content filter", "filtered", HALF, **FAILED),
    openai("silence from the start", "stall", end="PROVIDER_TIMEOUT"),
    openai("silence in the middle", "stall-middle", HALF, end="PROVIDER_TIMEOUT"),
    builtin(
        "one passage",
        TOOLS,
        "`acme/src/net.py:12-14`",
        "```python\ndef retry(times):",
        "No language",
    ),
    builtin("no passage", (tool("VectorSearch", found()),), "No passage matches"),
    builtin(
        "several passages",
        (tool("VectorSearch", found(*(match(relPath=f"{n}.py") for n in range(5)))),),
        "`acme/0.py:12-14`",
        "`acme/1.py:12-14`",
        "`acme/2.py:12-14`",
        "Also found: `acme/3.py:12-14`, `acme/4.py:12-14`.",
    ),
    builtin(
        "nothing ingested",
        NOTHING_INGESTED,
        "Nothing has been ingested yet",
        code="INGEST_REQUIRED",
    ),
    builtin(
        "a repository that is gone",
        (tool("VectorSearch", NotFound("gone", code="REPO_NOT_FOUND")),),
        "no longer ingested",
        code="REPO_NOT_FOUND",
    ),
    builtin(
        "an index that is away",
        (tool("VectorSearch", Unavailable("away", code="CHROMA_UNAVAILABLE")),),
        "does not answer",
        code="CHROMA_UNAVAILABLE",
    ),
    builtin(
        "an error nobody foresaw",
        (tool("VectorSearch", Unavailable("The moon is full.", code="MOON")),),
        "The search failed: The moon is full.",
        code="MOON",
    ),
    builtin("no tools", (), "The search failed", code="UNKNOWN_TOOL"),
]
