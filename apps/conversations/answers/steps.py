"""The steps of an answer on the page: thoughts and tool calls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from django.utils.safestring import SafeString

from apps.browse.finds import Find
from apps.conversations.answers import markdown
from apps.conversations.answers.citations import Citations
from apps.conversations.answers.found import FoundFile, found_files
from apps.conversations.answers.passages import Passage, passages_of
from apps.conversations.parts import Part
from apps.core.values.texts import counted
from apps.tools.tools import TOOLS_BY_NAME

State = Literal["running", "ok", "failed"]
SUBJECTS = ("query", "question", "pattern", "name", "path")
# Members of a result that are sentences for people.
NOTES = ("changed", "stopped", "slow", "notes")
NAME_NOTES = {
    "last-part": "No definition matches the qualifier. These have the last part of the name.",
    "case-insensitive": "No definition has exactly this name. These differ in case.",
}
TOKEN_WORDS = "token for the model", "tokens for the model"
MAX_SUBJECTS = 5  # definitions that are named whose callers are listed
STATES: dict[str, State] = {"started": "running", "success": "ok", "error": "failed"}
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
        return markdown.plain(self.text)


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
    def lines(self) -> str:
        """The lines that the call names: `lines 10-40, 200-230`, or ""."""
        start, end = self.parameters.get("start_line"), self.parameters.get("end_line")
        span = f"{start}-{end}" if start and end and end != start else start
        lines = self.parameters.get("lines") or span
        return f"lines {lines}" if lines else ""

    @cached_property
    def _members(self) -> Mapping[str, Any]:
        """The members of the result, if it is an object."""
        return self.result if isinstance(self.result, Mapping) else {}

    @cached_property
    def _passages(self) -> list[Passage]:
        return passages_of(self.result)

    @property
    def facts(self) -> list[str]:
        """What the tool counted beside its rows."""
        counts = {"totalLines": ("line in the file", "lines in the file"), "tokens": TOKEN_WORDS}
        return [
            counted(self._members[key], *words)
            for key, words in counts.items()
            if isinstance(self._members.get(key), int)
        ]

    @property
    def degraded(self) -> str:
        """What the result lacks because part of the index was not searched."""
        return str(self._members.get("degraded") or "")

    @property
    def notes(self) -> list[str]:
        """What the tool says of its result: that it is old, not all, or of other names."""
        notes = [str(self._members[key]) for key in NOTES if self._members.get(key)]
        how = NAME_NOTES.get(str(self._members.get("match")))
        return [*notes, how] if how and self._passages else notes

    @property
    def subjects(self) -> list[str]:
        """The definitions whose callers these are: `Client.build httpx/_client.py:371`."""
        rows = self._members.get("definitions")
        return [_subject(row) for row in rows[:MAX_SUBJECTS]] if isinstance(rows, list) else []

    @property
    def libraries(self) -> str:
        """The modules that a file imports and that are no files, in one line."""
        value = self._members.get("libraries")
        return value if isinstance(value, str) else ", ".join(_texts(value))

    @property
    def missing_words(self) -> list[str]:
        """Words of the query that no passage has."""
        return _texts(self._members.get("missingWords"))

    @property
    def left_out(self) -> str:
        """The passages for which Context had no room, a line each."""
        return "\n".join(_texts(self._members.get("leftOut")))

    @property
    def hint(self) -> str:
        """How to get the rest of a result that was cut."""
        return str(self._members.get("hint") or "") if self._passages else ""

    @property
    def outline(self) -> str:
        """The outline that came with the lines of a large file."""
        return "\n".join(_texts(self._members.get("outline")))

    @property
    def is_weak(self) -> bool:
        """True if nothing passed the cutoff: these are the nearest matches, and all there is."""
        answer = self._members.get("answer")
        if isinstance(answer, Mapping) and (answer.get("languages") or answer.get("modules")):
            return False
        return bool(self._passages) and all(passage.is_weak for passage in self._passages)

    @property
    def error_text(self) -> str:
        """`REPO_NOT_FOUND: no repository …`: the code and the message of the error."""
        return _code_and_message(self.error or {})

    @property
    def full_error_text(self) -> str:
        """The whole error, with its stack or response on lines of their own."""
        full = self.full_error or self.error
        if not isinstance(full, Mapping):
            return str(full or "")
        head = _code_and_message(full)
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
        """That nothing was found, and what to try; "" if something was, or is not looked for."""
        if all(self._members.get(key) != [] for key in ("results", "symbols")):
            return ""
        tool = TOOLS_BY_NAME.get(self.name)
        hint = self._members.get("hint") or (tool.empty_hint if tool else "")
        return str(hint or "Nothing was found.")

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
        if any(isinstance(self._members.get(key), list) for key in ("results", "symbols")):
            more = "at least " if self._members.get("truncated") else ""
            return more + counted(len(self._passages), *self._words)
        if self.repositories is not None:
            return counted(len(self.repositories), "repository", "repositories")
        return ""

    @property
    def _words(self) -> tuple[str, str]:
        """What a result is called, singular and plural."""
        if self._members.get("mode") in ("files", "count"):
            return "file", "files"
        tool = TOOLS_BY_NAME.get(self.name)
        return tool.result_words if tool else ("match", "matches")

    @cached_property
    def files(self) -> list[FoundFile]:
        """The matches by file, in the order of the tool, which puts the most useful first."""
        return found_files(
            (passage for passage in self._passages if not passage.is_entry),
            self.citations,
            self.find,
            words=self._words,
        )

    @property
    def entries(self) -> list[Passage]:
        """Whole files and folders, in the order of the tool."""
        return [passage for passage in self._passages if passage.is_entry]


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


def pretty(value: Any) -> str:
    """JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _code_and_message(error: Mapping[str, Any]) -> str:
    """Both, but the code once: some messages begin with it."""
    code, message = (str(error.get(key) or "") for key in ("code", "message"))
    return ": ".join(filter(None, [code, message.removeprefix(f"{code}: ")]))


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _subject(row: Any) -> str:
    """A definition in the result of FindCallers; its compact form is a text already."""
    if not isinstance(row, Mapping):
        return str(row)
    place = f"{row.get('repo')}/{row.get('relPath')}:{row.get('startLine')}"
    return f"{row.get('symbol') or ''} {place}".strip()
