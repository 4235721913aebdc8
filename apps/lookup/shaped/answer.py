"""Answer a question by its shape, from the symbols and the call graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from apps.code.languages import known_type
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.relations.types import Relation, Role, Scope
from apps.lookup.shaped import of_files, of_history, of_names, of_repositories
from apps.lookup.shaped.draft import MAX_ROWS, Draft
from apps.lookup.shapes import Question, ShapeName, read_question
from apps.lookup.symbols.definitions import matching
from apps.lookup.symbols.types import filled
from apps.retrieval.repositories import is_named, repo_id, roots_named

NOTHING_FOUND = "Nothing was found: {}."
NOTHING_YET = "Nothing was found in the files that were looked at: {}."
LEFT_OUT = "At least {} more lines are not shown."
# What an answer lacks if it has no rows with the role.
MISSING: dict[ShapeName, tuple[Role, str]] = {
    "callers": ("caller", "no line that calls {}"),
    "definition": ("definition", "nothing that is ingested defines {}"),
    "uses": ("reference", "no line that uses {}"),
    "tests": ("test", "no test that calls {} or has its name"),
    "configuration": ("setting", "no line that gives {} a value"),
    "implementations": ("implementation", "nothing that extends, implements or overrides {}"),
    "importers": ("importer", "no line that imports {}"),
    "history": ("commit", "no commit of {}"),
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
    languages: tuple[str, ...] = ()  # of the whole repository, as texts
    modules: tuple[str, ...] = ()
    search_text: str = ""  # what passages are searched for instead of the question
    degraded: str = ""  # as in SearchResult

    def as_wire(self) -> dict[str, object]:
        return {
            "shape": self.shape,
            "subject": self.subject,
            **filled(languages=list(self.languages), modules=list(self.modules)),
            "rows": [row.as_wire() for row in self.rows],
            **filled(notes=[*filter(None, [*self.notes, self.degraded])]),
        }


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
    # "What uses array.map?" may ask for a name.
    is_name = (
        question.shape in ("importers", "history")
        and of_files.NO_FILE.format(question.name) in answer.notes
    )
    return None if (is_file and not answer.rows) or is_name else answer


def _in_repository(question: Question, scope: Scope) -> Scope | None:
    """The scope within the repository that the question names; None if there is no such."""
    if not question.repository:
        return scope
    roots = roots_named(scope.repositories)
    named = [repo_id(root) for root in roots if is_named(root, question.repository)]
    return replace(scope, repositories=tuple(named)) if named else None


def _may_be_meant(question: Question, scope: Scope) -> bool:
    """Whether the words that stand for names are defined, if they may be words of a sentence."""
    if question.name.lower() == of_files.THIS_FILE:
        return of_files.only_file(scope) != ""
    if question.is_sure:
        return True
    names = [name for name in (question.name, question.other) if name]
    return all(_is_defined(name, scope) for name in names)


def _is_defined(name: str, scope: Scope) -> bool:
    hits, match = matching(scope.named(name))
    return bool(hits) and match == "exact"


@marked
def _build(question: Question, scope: Scope, deadline: Deadline) -> ShapedAnswer:
    draft = Draft(question, scope, deadline)
    _BUILDERS[question.shape](draft)
    role, missing = MISSING.get(question.shape, ("definition", ""))
    found = {row.role for row in draft.rows} | ({"caller"} if draft.has("test") else set())
    if missing and role not in found:
        names = [name for name in (question.name, question.other) if name]
        text = NOTHING_YET if deadline.unread else NOTHING_FOUND
        draft.note(text.format(missing.format(*names)))
    if left_out := draft.left_out + len(draft.rows[MAX_ROWS:]):
        draft.note(LEFT_OUT.format(left_out))
    draft.note(deadline.note)
    trace = question.trace
    named = " → ".join(filter(None, [question.name, question.other]))
    return ShapedAnswer(
        question.shape,
        trace.subject if trace else draft.subject or named,
        tuple(draft.rows[:MAX_ROWS]),
        tuple(draft.notes),
        tuple(draft.languages),
        tuple(draft.modules),
        trace.subject if trace else "",
    )


_BUILDERS: dict[ShapeName, Callable[[Draft], None]] = {
    "callers": of_names.callers,
    "uses": of_names.uses,
    "tests": of_names.tests,
    "configuration": of_names.configuration,
    "definition": of_names.definition,
    "implementations": of_names.implementations,
    "path": of_names.path,
    "steps": of_names.steps,
    "file": of_files.file,
    "importers": of_files.importers,
    "history": of_history.commits,
    "entry points": of_files.entry_points,
    "route": of_files.route,
    "stack trace": of_files.trace,
    "overview": of_repositories.overview,
    "commands": of_repositories.commands,
    "languages": of_repositories.languages,
    "modules": of_repositories.modules,
}
