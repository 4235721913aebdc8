"""Values of relations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

from apps.index.models import Root
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.symbols.call_types import Caller, Certainty
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.project import RootProject, files_of
from apps.lookup.symbols.types import DEFAULT_LIMIT, Place, Reference, SymbolQuery, filled
from apps.retrieval.overlaps import once, repeated_files
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

# Seconds in which files are read for an answer, in all roots: a search waits for it.
SECONDS = 2.0
# Characters of a line.
MAX_LINE = 200
# Kinds of files whose entry points and routes are not those of the product.
ASIDE = frozenset({"test", "example", "legacy", "prose"})
# What the lines are to the question.
Role = Literal[
    "definition",
    "caller",
    "reference",
    "test",
    "implementation",
    "step",
    "entry point",
    "route",
    "frame",
    "importer",
    "setting",
    "readme",
    "build",
    "tests",
    "run",
    "imported",
    "commit",
]


@dataclass(frozen=True)
class Relation:
    """Lines of a file, and what they are to the question."""

    role: Role
    place: Place
    line: int  # 1-based, the first
    text: str  # the lines, joined by "\n"
    symbol: str = ""  # the definition that has the lines, or that they are
    of: str = ""  # what they call, test, extend, serve, start or come from
    certainty: Certainty = "proven"

    @property
    def spot(self) -> tuple[UUID, str, int]:
        """The root, the file and the line."""
        return self.place.root.id, self.place.path, self.line

    @property
    def end_line(self) -> int:
        return self.line + self.text.count("\n")

    def as_wire(self) -> dict[str, Any]:
        return {
            **self.place.as_wire(),
            "kind": self.role,
            "certainty": self.certainty,
            "startLine": self.line,
            "endLine": self.end_line,
            "chunk": self.text,
            **filled(symbol=self.symbol, of=self.of),
        }


@dataclass(frozen=True)
class Relations:
    """The rows of a look-up, best first."""

    rows: tuple[Relation, ...] = ()
    note: str = ""  # what was not looked at, or how the rows were found


@dataclass(frozen=True)
class Scope:
    """The files that a look-up reads, and how many rows it returns."""

    repositories: tuple[str, ...] = ()  # repository ids; empty: all
    filters: Filters = field(default_factory=Filters)
    limit: int = DEFAULT_LIMIT

    def named(self, name: str, limit: int = 0) -> SymbolQuery:
        """The query for a name in this scope. limit: 0 for that of the scope"""
        return SymbolQuery(name, self.repositories, limit or self.limit, self.filters)

    def roots(self) -> tuple[Sequence[Root], Filters]:
        """Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND."""
        return narrowed(roots_named(self.repositories), self.filters)

    def collect(
        self, deadline: Deadline, look_up: Callable[[RootProject, "Scope"], Iterable[Relation]]
    ) -> list[Relation]:
        """The rows of all roots, each line once. Raises as `roots`."""
        roots, filters = self.roots()
        scope = replace(self, filters=filters)
        rows = collect_symbols(roots, lambda root: look_up(RootProject(root, deadline), scope))
        return once(rows, repeated_files(roots, filters))

    def paths(self, root: Root) -> set[str]:
        """The live files of a root in this scope."""
        return {file.path for file in files_of(root, self.filters)}


def first_of_lines(rows: Iterable[Relation]) -> list[Relation]:
    """The first row of each line."""
    first: dict[object, Relation] = {}
    for row in rows:
        first.setdefault(row.spot, row)
    return list(first.values())


def one_line(text: str) -> str:
    """A line as rows have it."""
    return text.strip()[:MAX_LINE]


def line_at(lines: Sequence[str], number: int) -> str:
    """The line with a number, as rows have it; "" behind the last one."""
    return one_line(lines[number - 1]) if number <= len(lines) else ""


def row_of(role: Role, line: Caller | Reference, of: str, certainty: Certainty) -> Relation:
    text = one_line(line.text)
    return Relation(role, line.place, line.line, text, line.symbol, of, certainty)
