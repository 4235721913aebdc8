"""Answer a question by its shape, from the symbols and the call graph."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.languages import known_type
from apps.code.paths import kinds
from apps.index.symbols import outline_of
from apps.index.types import Area
from apps.lookup.deadline import Deadline
from apps.lookup.ingested import ingested_lines, live_file
from apps.lookup.marking import marked
from apps.lookup.relations import (
    Relation,
    Relations,
    Scope,
    call_path,
    calls_of,
    entry_points,
    find_routes,
    frames_of,
    implementations_of,
    settings_of,
    tests_of,
)
from apps.lookup.relations.types import Role, one_line
from apps.lookup.shapes import Question, ShapeName, read_question
from apps.lookup.symbols import CallersQuery, ImportsQuery, find_callers, find_imports
from apps.lookup.symbols.call_types import Caller, Certainty
from apps.lookup.symbols.definitions import MINOR, OUTLINE_ONLY, Hit, matching
from apps.lookup.symbols.project import root_files
from apps.lookup.symbols.references import find_references
from apps.lookup.symbols.types import SEPARATORS, Place, Reference
from apps.retrieval.repositories import is_named, repo_id, roots_named

# Rows of an answer, and of its parts.
MAX_ROWS, MAX_DEFINITIONS, MAX_CALLERS, MAX_TESTS, MAX_OUTLINE = 24, 3, 14, 5, 12
# Lines at the beginning of a definition.
DEFINITION_LINES = 8
NOTHING_FOUND = "Nothing was found: {}."
NO_RULES = "Calls of {} are not resolved: these lines have the name."
NO_RULES_AT_ALL = "Calls of {} are not resolved."
NO_CALL = "No call of it was resolved: these lines have the name."
THIS_FILE = "this file"
LEFT_OUT = "At least {} more lines are not shown."
MORE_DEFINITIONS = "{} has {} definitions. Name one, as in Class.method."
# What an answer lacks if it has no rows with the role.
MISSING: dict[ShapeName, tuple[Role, str]] = {
    "callers": ("caller", "no line that calls {}"),
    "definition": ("definition", "nothing that is ingested defines {}"),
    "uses": ("reference", "no line that uses {}"),
    "tests": ("test", "no test that calls {} or has its name"),
    "configuration": ("setting", "no line that gives {} a value"),
    "implementations": ("implementation", "nothing that extends, implements or overrides {}"),
    "path": ("step", "no way of calls from {} to {}"),
    "steps": ("step", "no call in {} of what is defined here"),
    "entry points": ("entry point", "no entry point"),
    "route": ("route", "no route that serves {}"),
    "stack trace": ("frame", "no line of the trace is in a file that is ingested"),
}


@dataclass(frozen=True)
class ShapedAnswer:
    """The answer to a question that has a shape."""

    shape: ShapeName
    subject: str  # what it is about, as the question has it
    rows: tuple[Relation, ...]  # definitions first
    notes: tuple[str, ...]  # what was not found or not looked at
    search_text: str = ""  # what passages are searched for instead of the question
    degraded: str = ""  # as in SearchResult

    def as_wire(self) -> dict[str, object]:
        texts = [*self.notes, *([self.degraded] if self.degraded else [])]
        notes = {"notes": texts} if texts else {}
        rows = [row.as_wire() for row in self.rows]
        return {"shape": self.shape, "subject": self.subject, "rows": rows, **notes}


@dataclass
class _Draft:
    """An answer in the making."""

    question: Question
    scope: Scope
    deadline: Deadline
    rows: list[Relation] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    left_out: int = 0  # rows without room

    def add(self, rows: Iterable[Relation], most: int = MAX_ROWS) -> None:
        """Add rows whose lines no row has yet."""
        known = {(row.place.root.id, row.place.path, row.line) for row in self.rows}
        fresh = [r for r in rows if (r.place.root.id, r.place.path, r.line) not in known]
        self.rows += fresh[:most]
        self.left_out += len(fresh[most:])

    def take(self, found: Relations, most: int = MAX_ROWS) -> None:
        self.add(found.rows, most)
        self.note(found.note, found.degraded)

    def note(self, text: str, degraded: str = "") -> None:
        self.notes |= {text: None} if text else {}
        self.degraded |= {degraded: None} if degraded else {}

    def has(self, role: Role) -> bool:
        return any(row.role == role for row in self.rows)


def answer_by_shape(text: str, scope: Scope, deadline: Deadline) -> ShapedAnswer | None:
    """The answer to a question; None if it has no shape. Bounded by MAX_ROWS. Its parts read files
    until the deadline: the notes say how many they have not read.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    for question in read_question(text):
        if answer := _answered(question, scope, deadline):
            return answer
    return None


def _answered(question: Question, scope: Scope, deadline: Deadline) -> ShapedAnswer | None:
    narrowed = _in_repository(question, scope)
    if narrowed is None or not _may_be_meant(question, narrowed):
        return None
    answer = _build(question, narrowed, deadline)
    # "Where is /src/retry.py?" asks for a file, if no route is like it.
    is_file = question.shape == "route" and known_type(question.name) is not None
    return None if is_file and not answer.rows else answer


def _in_repository(question: Question, scope: Scope) -> Scope | None:
    """The scope within the repository that the question names; None if there is no such."""
    if not question.repository:
        return scope
    roots = roots_named(scope.repositories)
    named = [repo_id(root) for root in roots if is_named(root, question.repository)]
    return replace(scope, repositories=tuple(named)) if named else None


def _may_be_meant(question: Question, scope: Scope) -> bool:
    """Whether the words that stand for names are defined, if they may be words of a sentence."""
    if question.name.lower() == THIS_FILE:
        return _only_file(scope) != ""
    if question.is_sure:
        return True
    names = [name for name in (question.name, question.other) if name]
    return all(_is_defined(name, scope) for name in names)


def _is_defined(name: str, scope: Scope) -> bool:
    hits, match = matching(scope.named(name))
    return bool(hits) and match == "exact"


@marked
def _build(question: Question, scope: Scope, deadline: Deadline) -> ShapedAnswer:
    draft = _Draft(question, scope, deadline)
    _BUILDERS[question.shape](draft)
    role, missing = MISSING.get(question.shape, ("definition", ""))
    found = {row.role for row in draft.rows} | ({"caller"} if draft.has("test") else set())
    if missing and role not in found:
        names = [name for name in (question.name, question.other) if name]
        draft.note(NOTHING_FOUND.format(missing.format(*names)))
    if left_out := draft.left_out + len(draft.rows[MAX_ROWS:]):
        draft.note(LEFT_OUT.format(left_out))
    draft.note(deadline.note)
    trace = question.trace
    return ShapedAnswer(
        question.shape,
        trace.subject if trace else " → ".join(filter(None, [question.name, question.other])),
        tuple(draft.rows[:MAX_ROWS]),
        tuple(draft.notes),
        trace.subject if trace else "",
        "; ".join(draft.degraded),
    )


# --- definitions ----------------------------------------------------------------------------------


def _define(draft: _Draft, name: str, most: int = MAX_DEFINITIONS) -> list[Hit]:
    """Add the definitions of a name. Returns all of them."""
    hits, _ = matching(draft.scope.named(name))
    major = [hit for hit in hits if _is_major(hit)] or hits
    # `Flask` is also the name of a folder or a repository.
    major = [hit for hit in major if _ends_with(hit.symbol.path, name)] or major
    draft.add(_definitions(major[:most]), most)
    if len(major) > most > 1:
        draft.note(MORE_DEFINITIONS.format(name, len(major)))
    return list(hits)


def _is_major(hit: Hit) -> bool:
    """Whether it is a definition, and no constructor with the name of its class."""
    *scopes, name = SEPARATORS.split(hit.symbol.path)
    return hit.symbol.kind not in MINOR and name not in scopes


def _ends_with(path: str, name: str) -> bool:
    parts = [part for part in SEPARATORS.split(name) if part]
    return SEPARATORS.split(path)[-len(parts) :] == parts


def _definitions(hits: Sequence[Hit]) -> Iterator[Relation]:
    lines = ingested_lines((hit.root, hit.symbol.source_file) for hit in hits)
    for root, symbol in hits:
        first = symbol.start_line - 1
        last = min(symbol.end_line, first + DEFINITION_LINES)
        text = lines.get(symbol.source_file, [])[first:last] or [symbol.signature]
        place = Place(root, symbol.file_path, symbol.language)
        shown = "\n".join(line[:200] for line in text).rstrip()
        yield Relation("definition", place, symbol.start_line, shown, symbol.path)


# --- the shapes -----------------------------------------------------------------------------------


def _definition(draft: _Draft) -> None:
    _define(draft, draft.question.name, most=8)


def _callers(draft: _Draft) -> None:
    name = draft.question.name
    hits = _define(draft, name)
    query = draft.scope.named(name, limit=100)
    languages = {hit.symbol.language for hit in hits}
    if languages & BY_LANGUAGE.keys():
        found = find_callers(CallersQuery(query), draft.deadline)
        rows = [
            _row("test" if "test" in kinds(r.place.path) else "caller", r, r.callee, r.kind)
            for r in found.results
        ]
        draft.add((row for row in rows if row.role == "caller"), MAX_CALLERS)
        draft.add((row for row in rows if row.role == "test"), MAX_TESTS)
        draft.note(found.notes, found.degraded)
    if unresolved := languages - BY_LANGUAGE.keys():
        draft.note(NO_RULES.format(", ".join(sorted(unresolved))))
    if not draft.has("caller") and not draft.has("test"):
        if hits and not unresolved and not draft.deadline.unread:
            draft.note(NO_CALL)
        _refer(draft, most=12)
    if not draft.has("test"):
        _test(draft)


def _row(role: Role, line: Caller | Reference, of: str, certainty: Certainty) -> Relation:
    text = one_line(line.text)
    return Relation(role, line.place, line.line, text, line.symbol, of, certainty)


def _uses(draft: _Draft) -> None:
    _define(draft, draft.question.name)
    _refer(draft, most=14)
    _test(draft)


def _refer(draft: _Draft, most: int) -> None:
    """Add lines with the name: those of tests are added by `_test`."""
    query = draft.scope.named(draft.question.name, limit=100)
    found = find_references(query, draft.deadline)
    used = [r for r in found.results if not r.defines and "test" not in kinds(r.place.path)]
    draft.add((_row("reference", line, found.name, "possible") for line in used), most)
    draft.note("", found.degraded)


def _test(draft: _Draft, most: int = MAX_TESTS) -> None:
    found = tests_of(draft.scope.named(draft.question.name, most), draft.deadline)
    draft.take(replace(found, note=""), most)


def _tests(draft: _Draft) -> None:
    _define(draft, draft.question.name)
    _test(draft, most=14)


def _configuration(draft: _Draft) -> None:
    if matching(draft.scope.named(draft.question.name))[0]:
        _define(draft, draft.question.name)
    draft.take(settings_of(draft.scope.named(draft.question.name, MAX_ROWS), draft.deadline))


def _implementations(draft: _Draft) -> None:
    _define(draft, draft.question.name)
    query = draft.scope.named(draft.question.name, MAX_ROWS)
    draft.take(implementations_of(query, draft.deadline))


def _path(draft: _Draft) -> None:
    start, end = draft.question.name, draft.question.other
    _define(draft, start, most=1)
    found = call_path(draft.scope.named(start), draft.scope.named(end), draft.deadline)
    draft.take(found)
    _define(draft, end, most=1)


def _steps(draft: _Draft) -> None:
    hits = _define(draft, draft.question.name, most=1)
    draft.take(calls_of(draft.scope.named(draft.question.name, MAX_ROWS - 1), draft.deadline))
    languages = {hit.symbol.language for hit in hits} - BY_LANGUAGE.keys()
    if languages and not draft.has("step"):
        draft.note(NO_RULES_AT_ALL.format(", ".join(sorted(languages))))


def _file(draft: _Draft) -> None:
    place = _file_named(draft.question.name, draft.scope)
    if place is None:
        draft.note(NOTHING_FOUND.format(f"no file {draft.question.name} is ingested"))
        return
    row = live_file(place.root, place.path)
    lines = ingested_lines([(place.root, str(row.document))]).get(str(row.document), [])
    symbols = [s for s in outline_of(place.root, row.document) if s.kind not in MINOR]
    symbols = [s for s in symbols if s.kind not in OUTLINE_ONLY or not BY_LANGUAGE.get(s.language)]
    outer = [symbol for symbol in symbols if symbol.path == symbol.name] or symbols
    outer = list({symbol.path: symbol for symbol in reversed(outer)}.values())
    outer.sort(key=lambda symbol: symbol.start_line)
    draft.add(
        Relation(
            "definition",
            place,
            symbol.start_line,
            one_line(lines[symbol.start_line - 1]) if symbol.start_line <= len(lines) else "",
            symbol.path,
        )
        for symbol in outer[:MAX_OUTLINE]
    )
    query = replace(draft.scope, repositories=(repo_id(place.root),)).named(place.path, 8)
    found = find_imports(ImportsQuery(query, "importers"), draft.deadline)
    draft.add(
        (
            Relation("importer", e.place, e.line, one_line(e.text), "", place.path)
            for e in found.results
            if e.kind == "imported by"
        ),
        8,
    )
    draft.note(found.notes, found.degraded)


def _file_named(name: str, scope: Scope) -> Place | None:
    """The file of a path, or of the end of a path: the shortest. "This file" is the only one that
    the question is limited to."""
    if name.lower() == THIS_FILE:
        name = _only_file(scope)
    roots, filters = scope.roots()
    inner = replace(scope, filters=filters)
    for root in roots:
        visible = {path for path, _ in inner.files(root)}
        plain = name.removeprefix("./").removeprefix(f"{repo_id(root)}/")
        for path in root_files(root).tree.ending(plain):
            if path in visible:
                return Place(root, path, root_files(root).files[path].language)
    return None


def _only_file(scope: Scope) -> str:
    """The path that a question is limited to, if it is one; "" otherwise."""
    areas: Sequence[Area] = scope.filters.areas
    return areas[0].path if len(areas) == 1 else ""


def _entry_points(draft: _Draft) -> None:
    draft.take(entry_points(replace(draft.scope, limit=16), draft.deadline))


def _route(draft: _Draft) -> None:
    question = draft.question
    found = find_routes(
        replace(draft.scope, limit=10), question.name, question.method, draft.deadline
    )
    draft.take(found)
    handlers = {row.symbol: None for row in found.rows[:2] if row.symbol}
    for handler in handlers:
        hits, match = matching(draft.scope.named(handler.replace("#", ".")))
        if hits and match == "exact" and len(hits) <= MAX_DEFINITIONS:
            draft.add(_definitions(hits[:1]))


def _trace(draft: _Draft) -> None:
    if trace := draft.question.trace:
        draft.take(frames_of(replace(draft.scope, limit=16), trace.frames, draft.deadline))


_BUILDERS: dict[ShapeName, Callable[[_Draft], None]] = {
    "callers": _callers,
    "uses": _uses,
    "tests": _tests,
    "configuration": _configuration,
    "definition": _definition,
    "implementations": _implementations,
    "path": _path,
    "steps": _steps,
    "file": _file,
    "entry points": _entry_points,
    "route": _route,
    "stack trace": _trace,
}
