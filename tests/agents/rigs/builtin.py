"""Search only: no server and no model, so no cut connections and no silence."""

from collections.abc import Sequence

from apps.core.errors import NotFound, Unavailable
from apps.tools.tool import Tool
from tests.agents.fakes import NOTHING_INGESTED, TOOLS, found, match, tool
from tests.agents.rigs.base import Rig, Scenario

NO_SERVER = "it asks no server"


def searched(
    kind: str, tools_offered: Sequence[Tool], *text: str, code: str | None = None
) -> Scenario:
    """Return a scenario with the one search that this provider makes."""
    return Scenario(
        kind, "search", text, tools=(("VectorSearch", code),), tools_offered=tools_offered
    )


def searching(payload: object) -> tuple[Tool, ...]:
    return (tool("VectorSearch", payload),)  # type: ignore[arg-type]


RIG = Rig(
    provider="builtin",
    backend="builtin_backend",
    scenarios=(
        searched(
            "text: one passage",
            TOOLS,
            "`acme/src/net.py:12-14`",
            "```python\ndef retry(times):",
            "no language model",
        ),
        searched("one tool, no passage", searching(found()), "No passage matches"),
        searched(
            "text: several passages",
            searching(found(*(match(relPath=f"{n}.py") for n in range(5)))),
            "`acme/0.py:12-14`",
            "`acme/1.py:12-14`",
            "`acme/2.py:12-14`",
            "Also found: `acme/3.py:12-14`, `acme/4.py:12-14`.",
        ),
        searched(
            "a tool that fails: nothing ingested",
            NOTHING_INGESTED,
            "Nothing has been ingested yet",
            code="INGEST_REQUIRED",
        ),
        searched(
            "a tool that fails: a repository that is gone",
            searching(NotFound("gone", code="REPO_NOT_FOUND")),
            "no longer ingested",
            code="REPO_NOT_FOUND",
        ),
        searched(
            "a tool that fails: an index that is away",
            searching(Unavailable("away", code="CHROMA_UNAVAILABLE")),
            "does not answer",
            code="CHROMA_UNAVAILABLE",
        ),
        searched(
            "a tool that fails: an error nobody foresaw",
            searching(Unavailable("The moon is full.", code="MOON")),
            "The search failed: The moon is full.",
            code="MOON",
        ),
        searched("no tools", (), "The search failed", code="FORBIDDEN_TOOL"),
    ),
    markers=False,
    not_applicable={
        "thinking": "it has no model that thinks",
        "several tools": "it searches once",
        "an unknown tool": "it asks for one that it knows",
        "an empty answer": "it always has something to say",
        "10,000 tokens": "it quotes three passages",
        "an error before": NO_SERVER,
        "an error in the middle": NO_SERVER,
        "a cut connection": NO_SERVER,
        "silence from the start": NO_SERVER,
        "silence in the middle": NO_SERVER,
    },
)
