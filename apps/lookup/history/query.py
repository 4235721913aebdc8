"""The query of History: its wire keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from apps.index.types import Area, Filters
from apps.lookup.git.refs import MAX_NAME
from apps.lookup.symbols.types import MAX_NAME as MAX_SYMBOL
from apps.lookup.texts.reading import ranges_of
from apps.retrieval.query import (
    MAX_ID,
    MAX_PATH,
    areas_of,
    invalid,
    log_fields,
    optional_text,
    parse_limit,
    refuse,
    text_problem,
)

Of = Literal["log", "blame", "diff"]
KINDS: tuple[str, ...] = get_args(Of)
DEFAULT_LIMIT, MAX_LIMIT = 20, 100
# What `from` and `to` mean beside names of git.
INGEST = "ingest"


@dataclass(frozen=True)
class HistoryQuery:
    """What to tell of a repository's commits."""

    of: Of
    repository: str
    path: str = ""  # of a file or folder, relative to the root; "": all
    symbol: str = ""  # a definition, whose lines are meant
    lines: tuple[int, int | None] | None = None  # 1-based, both included; None: to the end
    since: str = ""  # `from`: a commit, whose change is not included
    to: str = ""  # a commit
    limit: int = DEFAULT_LIMIT
    cursor: Any = None  # of the page before
    areas: tuple[Area, ...] = ()  # files must be in one of them

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "HistoryQuery":
        """Check `{of?, repository, path?, symbol?, lines?, from?, to?, limit?, cursor?}`. Unknown
        keys are ignored. Raises InvalidInput with all problems."""
        problems: list[str] = []
        of: Any = data.get("of") or "log"
        if of not in KINDS:
            problems.append(f"of must be {', '.join(KINDS)}")
        if problem := text_problem("repository", data.get("repository")):
            problems.append(problem)
        longest = {"repository": MAX_ID, "path": MAX_PATH, "symbol": MAX_SYMBOL}
        longest |= {"from": MAX_NAME, "to": MAX_NAME}
        texts = {
            name: optional_text(data, name, most, problems).strip()
            for name, most in longest.items()
        }
        path = _path(texts["path"], problems)
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        refuse(problems)
        query = cls(
            of,
            texts["repository"],
            path,
            texts["symbol"],
            _lines(data.get("lines")),
            texts["from"],
            texts["to"],
            limit,
            data.get("cursor"),
            areas_of(data),
        )
        if (query.lines or of == "blame") and not (path or query.symbol):
            raise invalid("blame and lines need a path or a symbol")
        if query.lines and query.symbol:
            raise invalid("lines and symbol exclude each other")
        return query

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. Paths and names are private and left out."""
        return {**log_fields((self.repository,), self.limit, Filters()), "of": self.of}


def _path(text: str, problems: list[str]) -> str:
    """The path without `./` before it and a slash behind it."""
    path = text.removeprefix("./").removesuffix("/")
    if path == ".":
        return ""
    if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
        problems.append("path must be that of a file or folder, relative to the repository")
    return path


def _lines(value: Any) -> tuple[int, int | None] | None:
    ranges = ranges_of(value)
    if len(ranges) > 1:
        raise invalid("lines must be one range, such as '10-40'")
    return ranges[0] if ranges else None
