"""The steps of an answer on the page: thoughts and tool calls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Literal

from django.utils.safestring import SafeString, mark_safe

from apps.conversations.answers import markdown
from apps.conversations.answers.citations import Citations, Passage, passages_of
from apps.conversations.parts import Part
from apps.retrieval.finds import Find
from apps.retrieval.highlight import highlight_lines
from apps.retrieval.lines import fragment_url, source_url
from apps.retrieval.tools import TOOLS

State = Literal["running", "ok", "failed"]
SUBJECTS = ("query", "question", "pattern", "name", "path")
# Members of a result that are sentences for people.
NOTES = ("changed", "stopped", "slow")
STATES: dict[str, State] = {"started": "running", "success": "ok", "error": "failed"}
RESULT_WORDS = {tool.name: tool.result_words for tool in TOOLS}
MAX_PREVIEW_LINES, MAX_PREVIEW_CHARS = 4, 300
STAGE_WORDS: dict[State, str] = {"running": "Running", "ok": "Success", "failed": "Failed"}


@dataclass(frozen=True)
class Thought:
    """A reasoning part.

    index: of the part in the turn.
    seconds: its duration, once known.
    running: its text may still grow.
    """

    index: int
    text: str
    seconds: float | None
    running: bool

    kind = "thought"

    @property
    def html(self) -> SafeString:
        return mark_safe(markdown.plain(self.text))  # sanitised there


@dataclass(frozen=True)
class FoundPassage:
    """One result of a tool, and the number of its citation, if any."""

    passage: Passage
    number: int | None
    find: Find  # what the tool looked for

    @property
    def url(self) -> str:
        """The permalink of the lines, from which the reader can step through the matches."""
        it = self.passage
        return source_url(it.repo, it.path, it.start, it.end, **self.find.params)

    @property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        it = self.passage
        return fragment_url(it.repo, it.path, it.start, it.end, **self.find.params)

    @property
    def distance(self) -> str:
        return distance(self.passage.distance)

    @property
    def preview(self) -> list[SafeString]:
        """The first lines that are not blank, highlighted, without their common indentation."""
        passage = self.passage
        lines = [line[:MAX_PREVIEW_CHARS] for line in passage.text.splitlines() if line.strip()]
        text = dedent("\n".join(lines[:MAX_PREVIEW_LINES]))
        if not text:
            return []
        return highlight_lines(text, path=passage.path, language=passage.language)


@dataclass(frozen=True)
class FoundFile:
    """The results in one file, in the order of the tool."""

    repo: str
    path: str
    matches: list[FoundPassage]

    @property
    def first(self) -> Passage:
        return self.matches[0].passage

    @property
    def best(self) -> str:
        known = [m.passage.distance for m in self.matches if m.passage.distance is not None]
        return distance(min(known)) if known else "—"

    @property
    def has_text(self) -> bool:
        return any(match.passage.text for match in self.matches)

    @property
    def measured(self) -> bool:
        """True for search results, which have a distance; False for symbols."""
        return not self.first.kind

    @property
    def lines(self) -> int:
        return sum(match.passage.text.count("\n") + 1 for match in self.matches)


@dataclass(frozen=True)
class ToolStep:
    """A tool part (`parts.py`). `index`: of the part in the turn."""

    index: int
    call_id: str
    name: str
    state: State
    parameters: Mapping[str, Any]
    result: Any
    error: Mapping[str, str] | None
    seconds: float | None
    full_error: Any = None
    citations: Citations = field(default_factory=Citations)

    kind = "tool"

    @property
    def stage(self) -> str:
        return STAGE_WORDS[self.state]

    @property
    def query(self) -> str:
        """The subject of the call: a query, a pattern, a name or a path."""
        subjects = (self.parameters.get(key) for key in SUBJECTS)
        return str(next(filter(None, subjects), ""))

    @property
    def find(self) -> Find:
        """What the call looked for in the text of files; nothing for a path."""
        given = self.parameters
        if pattern := given.get("pattern"):
            is_regex = not given.get("fixed")
            prefix = "(?i)" if is_regex and given.get("ignore_case") else ""
            how = "regex" if is_regex else "" if given.get("ignore_case") else "text"
            return Find.read({"find": f"{prefix}{pattern}", "how": how})
        if name := given.get("name"):
            return Find.read({"find": str(name).rpartition(".")[2], "how": "text"})
        return Find.read({"find": given.get("query") or given.get("question")})

    @property
    def scope(self) -> str:
        """The repositories that the call names."""
        repository = self.parameters.get("repository") or ""
        names = repository if isinstance(repository, list) else [repository]
        return ", ".join(str(name) for name in names)

    @property
    def degraded(self) -> str:
        """What the result lacks because part of the index was not searched."""
        result = self.result if isinstance(self.result, Mapping) else {}
        return str(result.get("degraded") or "")

    @property
    def notes(self) -> list[str]:
        """What the tool says of its result: that it is old, or not all."""
        result = self.result if isinstance(self.result, Mapping) else {}
        return [str(result[key]) for key in NOTES if result.get(key)]

    @property
    def outline(self) -> str:
        """The outline that came with the lines of a large file."""
        result = self.result if isinstance(self.result, Mapping) else {}
        lines = result.get("outline")
        return "\n".join(map(str, lines)) if isinstance(lines, list) else ""

    @property
    def is_weak(self) -> bool:
        """True if nothing passed the cutoff: these are the nearest matches."""
        passages = passages_of(self.result)
        return bool(passages) and all(passage.is_weak for passage in passages)

    @property
    def full_error_text(self) -> str:
        """The whole error, with its stack or response on lines of their own."""
        full = self.full_error or self.error
        if not isinstance(full, Mapping):
            return str(full or "")
        head = ": ".join(str(full[key]) for key in ("code", "message") if full.get(key))
        rest = {key: value for key, value in full.items() if key not in ("code", "message")}
        texts = [
            value if isinstance(value, str) else pretty({key: value}) for key, value in rest.items()
        ]
        return "\n\n".join([head, *texts] if head else texts)

    @property
    def parameters_json(self) -> str:
        return pretty(self.parameters)

    @property
    def empty_hint(self) -> str:
        """What the tool advises if it has found nothing."""
        result = self.result if isinstance(self.result, Mapping) else {}
        return "" if result.get("results") else str(result.get("hint") or "")

    @property
    def result_json(self) -> str:
        """The result as JSON; "" if the page renders it as files, repositories or a hint."""
        drawn = self.files or self.entries or self.repositories is not None or self.empty_hint
        return "" if drawn else pretty(self.result)

    @property
    def locked_model(self) -> str:
        """The model of the index, in the result of ListIngestedRepositories."""
        return str(self.result.get("lockedModelId") or "") if self.repositories is not None else ""

    @property
    def repositories(self) -> list[Any] | None:
        """The result of ListIngestedRepositories; None for other tools."""
        repos = self.result.get("repos") if isinstance(self.result, Mapping) else None
        return [r for r in repos if isinstance(r, Mapping)] if isinstance(repos, list) else None

    @property
    def summary(self) -> str:
        """`5 matches`, `2 repositories`; nothing for other results."""
        result = self.result if isinstance(self.result, Mapping) else {}
        if any(isinstance(result.get(key), list) for key in ("results", "symbols")):
            more = "at least " if result.get("truncated") else ""
            words = RESULT_WORDS.get(self.name, ("match", "matches"))
            if result.get("mode") in ("files", "count"):
                words = "file", "files"
            return more + counted(len(passages_of(result)), *words)
        if self.repositories is not None:
            return counted(len(self.repositories), "repository", "repositories")
        return ""

    @property
    def files(self) -> list[FoundFile]:
        """The matches by file, files in alphabetical order."""
        files: dict[tuple[str, str], FoundFile] = {}
        for passage in passages_of(self.result):
            if passage.is_entry:
                continue
            key = (passage.repo, passage.path)
            file = files.setdefault(key, FoundFile(*key, matches=[]))
            file.matches.append(FoundPassage(passage, self.citations.number_of(passage), self.find))
        return [files[key] for key in sorted(files)]

    @property
    def entries(self) -> list[Passage]:
        """Whole files and folders, in the order of the tool."""
        return [passage for passage in passages_of(self.result) if passage.is_entry]


Step = Thought | ToolStep


def step_of(index: int, part: Part, citations: Citations, *, running: bool) -> Step:
    """A reasoning or tool part, `running` when it is the last one of a live answer."""
    if part["type"] == "reasoning":
        thinking = running and part.get("seconds") is None
        return Thought(index, part["text"], part.get("seconds"), thinking)
    return ToolStep(
        index=index,
        call_id=part["callId"],
        name=part["name"],
        state=STATES[part["stage"]],
        parameters=part["parameters"],
        result=part["result"],
        error=part["error"],
        full_error=part.get("errorFull"),
        seconds=part.get("seconds"),
        citations=citations,
    )


def distance(value: float | None) -> str:
    """Three digits, or a dash where there is none."""
    return "—" if value is None else f"{value:.3f}"


def counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def pretty(value: Any) -> str:
    """JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
