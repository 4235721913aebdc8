"""The "Search only" provider: searches once and quotes the best passages, without a language model.

It runs through the same loop as any provider: the first round calls VectorSearch, the second
answers from the result. So the complete path works without a model installed.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence

from apps.agents.events import ModelEvent, TextDelta, ToolCallRequested
from apps.agents.messages import ToolCall, ToolResult
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.quoting import place
from apps.core.config import config
from apps.core.types import JSON

SEARCH = Model("search", "Search only (no language model)", "search")

MAX_QUOTED = 3
MAX_LINES = 30

NO_MODEL = (
    "No language model is connected, so these are the passages themselves and not an explanation. "
    "To have questions answered in words, set `CODEINFO_OPENAI_BASE_URL` (and "
    "`CODEINFO_OPENAI_API_KEY` if the server asks for a key) to any OpenAI-compatible server and "
    "start again; `docs/providers.md` shows how."
)
OTHER_MODEL = (
    "“Search only” quotes what it finds; no language model has read it. "
    "Choose another provider to have the question answered in words."
)
NOT_FOUND = (
    "No passage matches this question. Try the words that the code itself would use: the name of a "
    "function or class, a setting, the text of an error message."
)
# Error code of the search → advice for the user.
ADVICE = {
    "INGEST_REQUIRED": (
        "Nothing has been ingested yet, so there is nothing to search. Choose a folder on the "
        "[Ingest page](/ingest) and ask again when it is done."
    ),
    "REPO_NOT_FOUND": (
        "The repository that the question is limited to is no longer ingested. Choose another one, "
        "or ask without a limit; the [Ingest page](/ingest) lists what there is."
    ),
    "EMBED_MODEL_MISSING": (
        "The repositories were ingested with an embedding model that cannot be loaded now, so they "
        "cannot be searched. Connect it again, or ingest them again with another one on the "
        "[Ingest page](/ingest)."
    ),
    "CHROMA_UNAVAILABLE": (
        "The search index does not answer, so nothing could be looked up. The start page shows "
        "what is connected; ask again when it is back."
    ),
    "DATABASE_UNAVAILABLE": (
        "The database does not answer, so nothing could be looked up. Ask again when it is back."
    ),
    "VALIDATION_FAILED": "This cannot be searched for. Ask in a sentence or a few words.",
}


class BuiltinProvider:
    """The provider that is always available."""

    id = "builtin"
    label = "Search only"
    system_prompt = SYSTEM_PROMPT

    async def origin(self) -> str:
        return ""

    async def availability(self) -> Availability:
        return Availability(available=True)

    async def models(self) -> Sequence[Model]:
        return (SEARCH,)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        last = request.messages[-1]
        if last.tool_result is None:
            question = next(m.text for m in reversed(request.messages) if m.role == "user")
            yield ToolCallRequested(ToolCall("search-1", "VectorSearch", {"query": question}))
            return
        for piece in answer(last.tool_result):
            yield TextDelta(piece)


def answer(result: ToolResult) -> Iterator[str]:
    """Yield the answer in Markdown, one passage at a time."""
    if not result.ok:
        yield ADVICE.get(result.error_code or "", f"The search failed: {result.error_message}")
        return
    matches: list[JSON] = result.payload["results"]
    if not matches:
        yield NOT_FOUND
    else:
        count = min(len(matches), MAX_QUOTED)
        yield (
            "The passage that fits best:" if count == 1 else f"The {count} passages that fit best:"
        )
    for match in matches[:MAX_QUOTED]:
        yield f"\n\n{quoted(match)}"
    if rest := matches[MAX_QUOTED:]:
        yield "\n\nAlso found: " + ", ".join(inline(reference(match)) for match in rest) + "."
    yield "\n\n" + (OTHER_MODEL if config().openai_base_url else NO_MODEL)


def reference(match: JSON) -> str:
    """Return the citation of a whole match, `repo/path:start-end`."""
    return place(match["repo"], match["relPath"], match.get("startLine"), match.get("endLine"))


def quoted(match: JSON) -> str:
    """Return a match as its citation and a code fence with exactly the cited lines."""
    lines, whole = quotable(match["chunk"].split("\n"), match)
    start = match.get("startLine")
    end = match.get("endLine") if whole or start is None else start + len(lines) - 1
    text = "\n".join(lines)
    fence = "`" * max(3, _longest_run(text) + 1)
    language = re.sub(r"[^\w+#.-]", "", match.get("language") or "").lower()
    citation = inline(place(match["repo"], match["relPath"], start, end))
    note = (
        ""
        if whole
        else f" (the first {len(lines)} lines)"
        if len(lines) > 1
        else " (its beginning)"
    )
    return f"{citation}{note}\n\n{fence}{language}\n{text}\n{fence}"


def quotable(lines: list[str], match: JSON) -> tuple[list[str], bool]:
    """Return the lines to quote (at most MAX_LINES) and whether they are the whole passage.

    Drops the last line if the search has cut the text, because that line may be incomplete.
    """
    start, end = match.get("startLine"), match.get("endLine")
    truncated = len(match["chunk"]) >= config().tool_chunk_max_chars
    if start is not None and end is not None:
        truncated = truncated or len(lines) < end - start + 1
    if truncated and len(lines) > 1:
        lines = lines[:-1]
    return lines[:MAX_LINES], not truncated and len(lines) <= MAX_LINES


def inline(text: str) -> str:
    """Return Markdown inline code, with enough backticks for those in the text."""
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{' '.join(text.splitlines())}{pad}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
