"""Queries for symbols and their results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, TypeVar
from unicodedata import normalize

from apps.code.paths import kinds
from apps.code.values import Symbol
from apps.core.values.surrogates import encodable
from apps.index.models import Root
from apps.index.paths import map_path
from apps.index.types import Area, Filters
from apps.retrieval.paging import PAGE, Page
from apps.retrieval.query import (
    MAX_ID,
    MAX_PATH,
    areas_of,
    fits,
    log_fields,
    parse_filters,
    parse_limit,
    parse_repositories,
    refuse,
    text_problem,
)
from apps.retrieval.repositories import repo_id

# Kinds of files that come last.
LAST_FILES = frozenset({"test", "example", "legacy"})
DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_NAME = 200
# `Client.get`, `Client::get`, `Client#get`, `client->get`, `pkg/client.get`
SEPARATORS = re.compile(r"::|->|[.#:/\\]")
WORD = re.compile(r"\w+")


def longest_word(name: str) -> str:
    """The word of a name by which the index finds it: for `valid?` it has `valid`."""
    return max(WORD.findall(name), key=len, default="")


def filled(**fields: Any) -> dict[str, Any]:
    """The fields that have a value: outputs leave the others out."""
    return {name: value for name, value in fields.items() if value}


# A name matches in the same case, in another case, or only by its last part.
MatchedName = Literal["exact", "case-insensitive", "last-part"]


@dataclass(frozen=True)
class SymbolQuery:
    """A name to look up."""

    name: str  # unqualified (`get`) or qualified (`Client.get`)
    repositories: tuple[str, ...] = ()  # repository ids; empty: all
    limit: int = DEFAULT_LIMIT  # 1 to MAX_LIMIT results
    filters: Filters = field(default_factory=Filters)
    cursor: Any = None  # of the page before
    # Lines that use the name are in files of one of these kinds (`code.paths.kinds`); empty: any
    file_kinds: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SymbolQuery":
        """Check `{name, repository?, path?, language?, limit?, cursor?}`; unknown keys are ignored.

        Raises InvalidInput; its details.details lists all problems.
        """
        problems: list[str] = []
        name = data.get("name")
        if problem := text_problem("name", name):
            problems.append(problem)
        elif not WORD.search(str(name)):
            problems.append("name is required")
        elif len(str(name)) > MAX_NAME or "\n" in str(name).strip():
            problems.append(f"name must be one line of at most {MAX_NAME} characters")
        repositories = parse_repositories(data.get("repository"), problems)
        filters = parse_filters(data, problems)
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        refuse(problems)
        # As the index has the names of all files.
        plain = normalize("NFC", _without_call(encodable(str(name))))
        return cls(plain, repositories, limit, filters, data.get("cursor"))

    @property
    def parts(self) -> tuple[str, ...]:
        """The name and its qualifiers, outermost first. The name of an operator is one part."""
        parts = [part for part in SEPARATORS.split(self.name) if part.strip()]
        return tuple(parts) if parts and WORD.search(parts[-1]) else (self.name,)

    @property
    def last(self) -> str:
        return self.parts[-1]

    def takes(self, root: Root, path: str, language: str) -> bool:
        """Whether a file may have lines that use the name."""
        is_of_kind = not self.file_kinds or not self.file_kinds.isdisjoint(kinds(path))
        return is_of_kind and fits(self.filters, root, path, language)

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. The name is private and left out."""
        return log_fields(self.repositories, self.limit, self.filters)


def _without_call(name: str) -> str:
    """The name without backticks and without the brackets of a call, which people copy along."""
    without = re.sub(r"\(.*\)?\Z", "", name.strip().strip("`"), flags=re.DOTALL).strip()
    return without if WORD.search(without) else name


@dataclass(frozen=True)
class OutlineQuery:
    """The file of an outline."""

    repository: str  # repository id
    path: str  # within the repository, as the index has it
    areas: tuple[Area, ...] = ()  # the file must be in one of them

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "OutlineQuery":
        """Check `{repository, path}`. Raises InvalidInput with all problems."""
        values = {key: data.get(key) for key in ("repository", "path")}
        problems = [
            f"{key} is required"
            for key, value in values.items()
            if not (isinstance(value, str) and value.strip())
        ]
        problems += [
            f"{key} must have at most {maximum:,} characters"
            for key, maximum in (("repository", MAX_ID), ("path", MAX_PATH))
            if len(str(values[key])) > maximum
        ]
        if "\0" in str(values["path"]):
            problems.append("path must not hold a NUL")
        refuse(problems)
        repository, path = (encodable(str(value)).strip() for value in values.values())
        return cls(repository, path.removeprefix("./"), areas_of(data))


@dataclass(frozen=True)
class Place:
    """A file of a root."""

    root: Root
    path: str  # within the root
    language: str  # "" if it is unknown

    @cached_property
    def repo(self) -> str:
        return repo_id(self.root)

    @property
    def is_last(self) -> bool:
        """Whether its lines come after those of other files."""
        return not LAST_FILES.isdisjoint(kinds(self.path))

    def as_wire(self) -> dict[str, Any]:
        mapped = map_path(self.root, self.path)
        return {
            "repo": self.repo,
            "relPath": self.path,
            "containerPath": mapped.container_path,
            "hostPath": mapped.host_path,
            **filled(hostPathWarning=mapped.warning, language=self.language),
        }


def symbol_fields(symbol: Symbol) -> tuple[Any, ...]:
    """The fields of a Symbol in order, to construct a subclass from it."""
    return tuple(getattr(symbol, one.name) for one in fields(Symbol))


def symbol_wire(symbol: Symbol) -> dict[str, Any]:
    names = ("name", "symbol", "kind", "startLine", "endLine", "signature")
    return dict(zip(names, symbol_fields(symbol), strict=True))


@dataclass(frozen=True, kw_only=True)
class Definition(Symbol):
    """A definition of a name."""

    place: Place
    chunk: str = ""  # the beginning of its text, or the signature if the text is unavailable
    note: str = ""  # what the parser could not read of the file

    def as_wire(self) -> dict[str, Any]:
        wire = {**self.place.as_wire(), **symbol_wire(self), "chunk": self.chunk}
        return wire | filled(note=self.note)


@dataclass(frozen=True)
class Reference:
    """A line that contains a name."""

    place: Place
    line: int  # 1-based
    columns: tuple[int, ...]  # 1-based
    text: str  # of the line
    symbol: str  # path of the definition that contains the line; "" at the top level
    defines: bool  # the line defines the name
    parsed: bool  # comments and strings are left out; otherwise each whole word counts

    def as_wire(self) -> dict[str, Any]:
        return {
            **self.place.as_wire(),
            "startLine": self.line,
            "endLine": self.line,
            "columns": list(self.columns),
            "kind": "definition" if self.defines else "reference",
            "match": "identifier" if self.parsed else "word",
            "chunk": self.text,
            **filled(symbol=self.symbol),
        }


class WireRow(Protocol):
    """A row of an answer."""

    def as_wire(self) -> dict[str, Any]: ...


AnswerRow = TypeVar("AnswerRow", bound=WireRow)


@dataclass(frozen=True)
class Listed(Generic[AnswerRow]):
    """The rows that a look-up finds for a name."""

    name: str  # as in the query; of references its last part
    results: tuple[AnswerRow, ...]  # best first
    truncated: bool  # there are more
    notes: str = ""  # what was not looked at, or how the rows were found
    degraded: str = ""  # as in SearchResult
    page: Page | None = None

    def as_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **self.facts(),
            "results": [row.as_wire() for row in self.results],
            "truncated": self.truncated,
            **filled(notes=self.notes, degraded=self.degraded),
            # Until `paging.finished` makes its cursor.
            **({} if self.page is None else {PAGE: self.page}),
        }

    def facts(self) -> dict[str, Any]:
        """What an answer of a kind has besides, on the wire."""
        return {}


@dataclass(frozen=True)
class Definitions(Listed[Definition]):
    """The definitions of a name."""

    match: MatchedName = "exact"

    def facts(self) -> dict[str, Any]:
        return {"match": self.match}


@dataclass(frozen=True, kw_only=True)
class OutlineItem(Symbol):
    """A definition in an outline."""

    # Definitions inside it, in the order of their lines.
    children: "list[OutlineItem]" = field(default_factory=list)

    def as_wire(self) -> dict[str, Any]:
        return symbol_wire(self) | filled(children=[child.as_wire() for child in self.children])


@dataclass(frozen=True)
class Outline:
    """The nested definitions of a file."""

    place: Place
    items: Sequence[OutlineItem]  # at the top level, in the order of their lines
    degraded: str = ""  # as in SearchResult
    note: str = ""  # as in Definition

    def as_wire(self) -> dict[str, Any]:
        symbols = [item.as_wire() for item in self.items]
        notes = filled(note=self.note, degraded=self.degraded)
        return {**self.place.as_wire(), "symbols": symbols, **notes}


def flattened(items: Sequence[OutlineItem]) -> Iterator[tuple[int, OutlineItem]]:
    """Each item with its depth from 0, outer before inner."""
    stack = [(0, item) for item in reversed(items)]
    while stack:
        depth, item = stack.pop()
        yield depth, item
        stack.extend((depth + 1, child) for child in reversed(item.children))
