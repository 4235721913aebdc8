"""The "Search only" provider: searches once and quotes the best passages, without a language model.

It runs through the same loop as any provider: the first round calls VectorSearch, the second
answers from the result. So the complete path works without a model installed.
"""

import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence

from apps.agents.events import ModelEvent, TextDelta, ToolCallRequested
from apps.agents.messages import ToolCall, ToolResult
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.providers.builtin_shapes import by_shape, fenced, inline
from apps.core.config import config
from apps.core.types import JSON
from apps.retrieval.ranking.rank import IDENTIFIER
from apps.tools.forms import place
from apps.tools.snippets import best_lines

SEARCH = Model("search", "Search only (no language model)", "search")

MAX_QUOTED = 3
MAX_LINES = 30

NO_MODEL = (
    "“Search only” quotes what it finds; no language model has read it. To have the question "
    "answered in words, choose another provider, or [connect one](/providers)."
)
NOT_FOUND = (
    "No passage matches this question. Try the words that the code itself would use: the name of a "
    "function or class, a setting, the text of an error message."
)
INCOMPLETE = "The answer is not complete:"
WORDS_ONLY = "The vectors are unavailable, so only words were searched."
NOTHING_ELSE = "No other passage matches this question."
GREETING = (
    "Ask a question about the ingested code, in words that the code itself would use: the name of "
    "a function or class, a setting, the text of an error message."
)
GREETINGS = re.compile(r"(hi|hello|hey|thanks|thank you|good (morning|afternoon|evening))\W*", re.I)
# Shapes of questions about a repository as a whole.
ABOUT_REPOSITORIES = frozenset({"overview", "commands", "languages", "modules"})
# How a passage was found → the reason shown beside it.
REASONS = {"vector": "by meaning", "words": "by words", "both": "by meaning and words"}
# The beginning of a line that defines nothing: a comment, an import, a package clause.
PREAMBLE = re.compile(
    r"//|/?\*|#|--|;|%|\"\"\"|'''|<!--|(?:import|use|using|include|require|package|namespace)\b"
    r"|from\s\S{1,80}\simport\b|export\s.{1,80}\sfrom\b|const\s.{1,80}\srequire\b|['\"]use strict"
)
PREAMBLE_SHARE = 0.8
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
        "The database does not answer or is damaged, so nothing could be looked up. The start page "
        "says which."
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
        question = next(m.text for m in reversed(request.messages) if m.role == "user")
        last = request.messages[-1]
        if last.tool_result is not None:
            for piece in answer(last.tool_result, question):
                yield TextDelta(piece)
        elif GREETINGS.fullmatch(question.strip()):
            yield TextDelta(GREETING)
        else:
            yield ToolCallRequested(ToolCall("search-1", "VectorSearch", {"query": question}))


def answer(result: ToolResult, question: str) -> Iterator[str]:
    """Yield the answer in Markdown, one passage at a time."""
    if not result.ok:
        yield ADVICE.get(result.error_code or "", f"The search failed: {result.error_message}")
        return
    matches: list[JSON] = sorted(result.payload["results"], key=is_preamble)
    shaped = result.payload.get("answer") or {}
    # Words of the question, not of what it is about: no passage has "reach".
    is_said = bool(shaped) or "hint" in result.payload
    missing = "" if is_said else lacking(result.payload.get("missingWords") or [], question)
    if degraded := result.payload.get("degraded"):
        sentence = WORDS_ONLY if degraded == "words only" else f"{INCOMPLETE} {inline(degraded)}."
        yield f"{sentence}\n\n"
    if shaped:
        beginning = {_start(match): match for match in reversed(matches)}
        defined = [row for row in shaped["rows"] if row["kind"] == "definition"]
        whole = {_start(row) for row in defined} & beginning.keys()
        matches = [match for match in matches if _start(match) not in whole]
        yield from by_shape(
            shaped,
            lambda row: quoted(beginning[_start(row)], question) if _start(row) in whole else "",
        )
    if _needs_no_passage(shaped, matches):
        pass
    elif degraded and not matches:
        yield NOTHING_ELSE
    elif all(match.get("weak") for match in matches):
        yield from nothing_fits(matches, missing, result.payload.get("hint") or NOT_FOUND)
    else:
        yield from passages(matches, missing, question)
    yield f"\n\n{NO_MODEL}"


def _needs_no_passage(shaped: JSON, matches: Sequence[JSON]) -> bool:
    """Return True if the answer by the shape of the question is all: no passage fits, or none can
    be about a repository as a whole."""
    if shaped.get("shape") in ABOUT_REPOSITORIES:
        return any(shaped.get(key) for key in ("rows", "languages", "modules"))
    return bool(shaped.get("rows")) and all(match.get("weak") for match in matches)


def _start(row: JSON) -> tuple[str, str, int | None]:
    return row["repo"], row["relPath"], row.get("startLine")


def lacking(words: Sequence[str], question: str) -> str:
    """Return sentences about the words of a question that no passage has; "" if there are none.
    Only what the question marks as a name is called one."""
    names = [inline(word) for word in words if _is_name(word, question)]
    others = [f"“{word}”" for word in words if not _is_name(word, question)]
    sentences = [f"No definition or use of {', '.join(names)}."] if names else []
    sentences += [f"No passage has {', '.join(others)}."] if others else []
    return " ".join(sentences)


def _is_name(word: str, question: str) -> bool:
    """Whether a question has a word as a name of code: in backticks, with parentheses behind it, or
    in a form that no word of a sentence has."""
    marked = f"`{word}`" in question or f"{word}(" in question
    return marked or IDENTIFIER.search(word) is not None


def nothing_fits(matches: Sequence[JSON], missing: str, advice: str = NOT_FOUND) -> Iterator[str]:
    """Yield that no match answers the question, with the nearest ones as citations.

    missing: the sentences of `lacking`
    """
    if missing:
        yield f"{missing}\n\n"
    yield advice
    if matches:
        nearest = [f"{inline(reference(match))} ({reason(match)})" for match in matches]
        yield f"\n\nThe nearest passages, probably unrelated: {', '.join(nearest)}."


def passages(matches: Sequence[JSON], missing: str, question: str) -> Iterator[str]:
    """Yield the first MAX_QUOTED matches as quotations, and the others as citations.

    missing: as in `nothing_fits`
    """
    if missing:
        yield f"{missing} The passages fit the rest of the question.\n\n"
    if len(counts := Counter(match["repo"] for match in matches)) > 1:
        listed = ", ".join(f"{inline(name)} ({count})" for name, count in counts.items())
        yield f"Found in {len(counts)} repositories: {listed}. You can limit the question.\n\n"
    count = min(len(matches), MAX_QUOTED)
    yield "The passage that fits best:" if count == 1 else f"The {count} passages that fit best:"
    for match in matches[:MAX_QUOTED]:
        yield f"\n\n{quoted(match, question)}"
    if rest := matches[MAX_QUOTED:]:
        yield "\n\nAlso found: " + ", ".join(inline(reference(match)) for match in rest) + "."


def is_preamble(match: JSON) -> bool:
    """Return True if nearly all lines are comments or imports: a licence, the head of a file."""
    lines = [line.strip() for line in match["chunk"].split("\n") if re.search(r"\w", line)]
    return sum(bool(PREAMBLE.match(line)) for line in lines) >= PREAMBLE_SHARE * len(lines)


def reason(match: JSON) -> str:
    """Return how near a match is, and how it was found."""
    score = match.get("score")
    distance = "distance unknown" if score is None else f"distance {score:.2f}"
    how = REASONS.get(match.get("matchedBy") or "")
    return f"{distance}, found {how}" if how else distance


def reference(match: JSON) -> str:
    """Return the citation of a whole match, `repo/path:start-end`."""
    return place(match["repo"], match["relPath"], match.get("startLine"), match.get("endLine"))


def quoted(match: JSON, question: str = "") -> str:
    """Return a match as its citation, its reason, and a code fence with exactly the cited lines."""
    lines, is_complete = complete_lines(match)
    first = best_lines(lines, question, MAX_LINES)
    shown = lines[first : first + MAX_LINES]
    is_whole = is_complete and len(shown) == len(lines)
    start, end = match.get("startLine"), match.get("endLine")
    if start is not None and not is_whole:
        start, end = start + first, start + first + len(shown) - 1
    code = fenced("\n".join(shown), match.get("language") or "")
    citation = inline(place(match["repo"], match["relPath"], start, end))
    part = "" if is_whole else "; part of a longer passage"
    return f"{citation} ({reason(match)}{part})\n\n{code}"


def complete_lines(match: JSON) -> tuple[list[str], bool]:
    """Return the lines of a passage, and whether they are all of them.

    Drops the last line if the search has cut the text, because that line may be incomplete.
    """
    lines: list[str] = match["chunk"].split("\n")
    start, end = match.get("startLine"), match.get("endLine")
    truncated = len(match["chunk"]) >= config().tool_chunk_max_chars
    if start is not None and end is not None:
        truncated = truncated or len(lines) < end - start + 1
    return lines[:-1] if truncated and len(lines) > 1 else lines, not truncated
