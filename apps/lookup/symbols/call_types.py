"""Queries for callers and imports, and their results."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from apps.core.errors import InvalidInput
from apps.core.values.surrogates import encodable
from apps.lookup.symbols.types import Listed, Place, SymbolQuery, filled
from apps.retrieval.query import MAX_PATH, parse_flag, parse_limit, refuse

MAX_DEPTH = 3
# `src/app.py:12`: the definition on this line
AT_LINE = re.compile(r"(.+):(\d{1,7})")
Certainty = Literal["proven", "possible"]
Direction = Literal["both", "importers", "imports"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)


@dataclass(frozen=True)
class CallersQuery:
    """Whose callers to find."""

    symbol: SymbolQuery  # the name, with the filters of callers
    depth: int = 1  # 1 to MAX_DEPTH
    path: str = ""  # of the definition, if it is given by its line
    line: int = 0  # 1-based
    tests: bool = False  # whether only tests are wanted

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "CallersQuery":
        """Check `{name, repository?, path?, language?, depth?, tests?, limit?, cursor?}`. A name
        may be `path:line`. Raises InvalidInput with all problems."""
        problems: list[str] = []
        depth = parse_limit(data.get("depth"), 1, MAX_DEPTH, problems, name="depth")
        tests = parse_flag(data.get("tests"), "tests", problems)
        name = data.get("name")
        match = AT_LINE.fullmatch(name.strip()) if isinstance(name, str) else None
        at_line = match is not None and len(match[1]) <= MAX_PATH and "\n" not in match[1]
        symbol = _symbol({**data, "name": "line"} if at_line else data, problems)
        if not at_line or match is None:
            return cls(symbol, depth, tests=tests)
        path = encodable(match[1]).removeprefix("./")
        return cls(symbol, depth, path, int(match[2]), tests=tests)

    @property
    def cursor(self) -> Any:
        return self.symbol.cursor

    @property
    def shown(self) -> str:
        """The name as it was asked for."""
        return f"{self.path}:{self.line}" if self.path else self.symbol.name

    def as_log(self) -> dict[str, Any]:
        return self.symbol.as_log() | {"depth": self.depth}


@dataclass(frozen=True)
class ImportsQuery:
    """What imports what."""

    symbol: SymbolQuery  # the file or module, with the filters of importers
    direction: Direction = "both"

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "ImportsQuery":
        """Check `{name, direction?, repository?, path?, language?, limit?, cursor?}`. Raises
        InvalidInput with all problems."""
        problems: list[str] = []
        direction: Any = data.get("direction") or "both"
        if direction not in DIRECTIONS:
            problems.append(f"direction must be {', '.join(DIRECTIONS)}")
        return cls(_symbol(data, problems), direction)

    @property
    def cursor(self) -> Any:
        return self.symbol.cursor

    def as_log(self) -> dict[str, Any]:
        return self.symbol.as_log() | {"direction": self.direction}


def _symbol(data: Mapping[str, Any], problems: list[str]) -> SymbolQuery:
    """The name and the filters of a query. Raises InvalidInput, also for the problems so far."""
    try:
        symbol = SymbolQuery.parse(data)
    except InvalidInput as error:
        problems = [*error.details["details"], *problems]
    refuse(problems)
    return symbol


@dataclass(frozen=True)
class CalledDefinition:
    """A definition whose callers are found."""

    place: Place
    symbol: str
    line: int  # 1-based

    def as_wire(self) -> dict[str, Any]:
        return {
            "repo": self.place.repo,
            "relPath": self.place.path,
            "symbol": self.symbol,
            "startLine": self.line,
        }


@dataclass(frozen=True)
class Caller:
    """A line that calls a definition."""

    place: Place
    line: int  # 1-based
    column: int  # 1-based, of the name that is called
    text: str  # of the line
    symbol: str  # path of the definition that contains the line; "" at the top level
    callee: str  # path of the definition that is called
    kind: Certainty
    depth: int  # 1: calls what was asked for; 2: calls a caller; …

    def as_wire(self) -> dict[str, Any]:
        return {
            **self.place.as_wire(),
            "startLine": self.line,
            "endLine": self.line,
            "column": self.column,
            "kind": self.kind,
            "callee": self.callee,
            "depth": self.depth,
            "chunk": self.text,
            **filled(symbol=self.symbol),
        }


@dataclass(frozen=True)
class Callers(Listed[Caller]):
    """The callers of a name: by depth, proven first, then by path and line, tests last."""

    definitions: tuple[CalledDefinition, ...] = ()

    def facts(self) -> dict[str, Any]:
        return {"definitions": [definition.as_wire() for definition in self.definitions]}


@dataclass(frozen=True)
class ImportEdge:
    """A line that imports a module."""

    place: Place
    line: int  # 1-based
    text: str  # of the line
    kind: Literal["imports", "imported by"]
    module: str  # as it is written
    names: tuple[str, ...]  # that it takes from the module; empty: the module itself
    target: str  # path in the repository; "": external

    def as_wire(self) -> dict[str, Any]:
        return {
            **self.place.as_wire(),
            "startLine": self.line,
            "endLine": self.line,
            "kind": self.kind,
            "module": self.module,
            "names": list(self.names),
            "target": self.target or None,
            "chunk": self.text,
        }


@dataclass(frozen=True)
class Imports(Listed[ImportEdge]):
    """Who imports a file, then what it imports."""

    libraries: tuple[str, ...] = ()  # modules that it imports and that are no files searched

    def facts(self) -> dict[str, Any]:
        return filled(libraries=list(self.libraries))
