"""Queries for symbols and their results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from unicodedata import normalize

from apps.code.paths import kinds
from apps.code.values import Symbol
from apps.core.errors import InvalidInput
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
    text_problem,
)
from apps.retrieval.repositories import repo_id

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_NAME = 200
# `Client.get`, `Client::get`, `Client#get`, `client->get`, `pkg/client.get`
SEPARATORS = re.compile(r"::|->|[.#:/\\]")
WORD = re.compile(r"\w+")

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
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
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
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        repository, path = (encodable(str(value)).strip() for value in values.values())
        return cls(repository, path.removeprefix("./"), areas_of(data))


@dataclass(frozen=True)
class Place:
    """A file of a root."""

    root: Root
    path: str  # within the root
    language: str  # "" if it is unknown

    @property
    def repo(self) -> str:
        return repo_id(self.root)

    def as_wire(self) -> dict[str, Any]:
        mapped = map_path(self.root, self.path)
        wire: dict[str, Any] = {
            "repo": self.repo,
            "relPath": self.path,
            "containerPath": mapped.container_path,
            "hostPath": mapped.host_path,
        }
        if mapped.warning:
            wire["hostPathWarning"] = mapped.warning
        return wire | ({"language": self.language} if self.language else {})


def symbol_fields(symbol: Symbol) -> tuple[str, str, str, int, int, str]:
    """The fields of a Symbol in order, to construct a subclass from it."""
    return (
        symbol.name,
        symbol.path,
        symbol.kind,
        symbol.start_line,
        symbol.end_line,
        symbol.signature,
    )


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
        return wire | ({"note": self.note} if self.note else {})


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
        wire = {
            **self.place.as_wire(),
            "startLine": self.line,
            "endLine": self.line,
            "columns": list(self.columns),
            "kind": "definition" if self.defines else "reference",
            "match": "identifier" if self.parsed else "word",
            "chunk": self.text,
        }
        return wire | ({"symbol": self.symbol} if self.symbol else {})


def degraded_wire(degraded: str) -> dict[str, str]:
    """`degraded` is on the wire only if it is not empty."""
    return {"degraded": degraded} if degraded else {}


def page_wire(page: Page | None) -> dict[str, Page]:
    """The page, until `paging.finished` makes its cursor."""
    return {} if page is None else {PAGE: page}


@dataclass(frozen=True)
class Definitions:
    """The definitions of a name."""

    name: str  # as in the query
    results: tuple[Definition, ...]  # best first
    truncated: bool  # there are more
    match: MatchedName = "exact"
    degraded: str = ""  # as in SearchResult
    page: Page | None = None

    def as_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "match": self.match,
            "results": [result.as_wire() for result in self.results],
            "truncated": self.truncated,
            **degraded_wire(self.degraded),
            **page_wire(self.page),
        }


@dataclass(frozen=True)
class References:
    """The references to a name."""

    name: str  # the last part of the name in the query
    results: tuple[Reference, ...]  # definitions, then by path and line, tests last
    truncated: bool  # there are more
    degraded: str = ""  # as in SearchResult
    page: Page | None = None

    def as_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "results": [result.as_wire() for result in self.results],
            "truncated": self.truncated,
            **degraded_wire(self.degraded),
            **page_wire(self.page),
        }


@dataclass(frozen=True, kw_only=True)
class OutlineItem(Symbol):
    """A definition in an outline."""

    # Definitions inside it, in the order of their lines.
    children: "list[OutlineItem]" = field(default_factory=list)

    def as_wire(self) -> dict[str, Any]:
        children = [child.as_wire() for child in self.children]
        return symbol_wire(self) | ({"children": children} if children else {})


@dataclass(frozen=True)
class Outline:
    """The nested definitions of a file."""

    place: Place
    items: Sequence[OutlineItem]  # at the top level, in the order of their lines
    degraded: str = ""  # as in SearchResult
    note: str = ""  # as in Definition

    def as_wire(self) -> dict[str, Any]:
        symbols = [item.as_wire() for item in self.items]
        note = {"note": self.note} if self.note else {}
        return {**self.place.as_wire(), "symbols": symbols, **note, **degraded_wire(self.degraded)}

    def flat(self) -> Iterator[tuple[int, OutlineItem]]:
        """Each item with its depth from 0, outer before inner."""
        stack = [(0, item) for item in reversed(self.items)]
        while stack:
            depth, item = stack.pop()
            yield depth, item
            stack.extend((depth + 1, child) for child in reversed(item.children))
