"""A question to the index and what comes back, as values that check themselves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from apps.core.errors import InvalidInput
from apps.index.types import Filters
from apps.retrieval.scope import parse_filters

DEFAULT_LIMIT = 5
MAX_LIMIT = 20

MatchedBy = Literal["vector", "words", "both"]


@dataclass(frozen=True)
class SearchQuery:
    """What to look for. `repositories` are repository ids (names of roots); none asks all."""

    text: str
    repositories: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT
    filters: Filters = field(default_factory=Filters)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SearchQuery":
        """Check `{query, repository?, path?, language?, limit?}` (contract.md §4.2, and filters;
        unknown keys are ignored). `repository` is an id or a list of them.

        Raises InvalidInput whose details.details lists everything that is wrong.
        """
        problems: list[str] = []
        text = data.get("query")
        if not isinstance(text, str) or not text.strip():
            problems.append("query is required")
        repositories = parse_repositories(data.get("repository"), problems)
        filters = parse_filters(data, problems)
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        return cls(
            text=encodable(str(text)).strip(),
            repositories=repositories,
            limit=limit,
            filters=filters,
        )

    def as_log(self) -> dict[str, Any]:
        """What may be logged of a question: its scope and size, not its words."""
        return logged(self.repositories, self.limit, self.filters)


def logged(repositories: Sequence[str], limit: int, filters: Filters) -> dict[str, Any]:
    """The scope and size of a question, as the log has them."""
    filtered = {"filtered": True} if filters != Filters() else {}
    return {"repository": ", ".join(repositories) or "all", "limit": limit, **filtered}


def parse_repositories(value: Any, problems: list[str]) -> tuple[str, ...]:
    """The distinct ids in what stands under `repository`; blank values and [] mean all."""
    if not value:
        return ()
    ids = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) and each.strip() for each in ids):
        problems.append("repository must be a non-empty string when provided")
        return ()
    return tuple(dict.fromkeys(encodable(each).strip() for each in ids))


def parse_limit(value: Any, usual: int, most: int, problems: list[str]) -> int:
    """A whole number moved into 1..most; the usual one where it is left out or blank."""
    limit = value or usual
    if isinstance(limit, bool) or not (
        isinstance(limit, int) or (isinstance(limit, float) and limit.is_integer())
    ):
        problems.append("limit must be an integer")
        return usual
    return max(1, min(most, int(limit)))


def encodable(text: str) -> str:
    """JSON may carry half of a surrogate pair, which no encoder takes."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class Row:
    """A candidate in index order, before the pipeline. Scores are distances: lower is better."""

    repo: str
    rel_path: str
    container_path: str
    host_path: str
    chunk: str
    chunk_id: str
    model_id: str
    score: float | None = None
    host_path_warning: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    symbol: str = ""
    language: str = ""
    matched_by: MatchedBy = "vector"

    @property
    def distance(self) -> float:
        """To sort by: the score, or farther than any where there is none."""
        return math.inf if self.score is None else self.score


@dataclass(frozen=True)
class Found:
    """Candidates in their order. `degraded` says what the index could not do: "", "words only"
    (the vectors are away, so that no row has a score), "words only in" some of the repositories,
    "vectors only: " and whose words are being rebuilt, or which of them lack vectors."""

    rows: list[Row]
    degraded: str = ""


@dataclass(frozen=True)
class Match(Row):
    """A row that survived the pipeline. `chunk` may be cut; `line_count` counts what is left."""

    line_count: int | None = None

    def as_wire(self) -> dict[str, Any]:
        """One entry of `results` (contract.md §4.3, plus startLine, endLine, matchedBy, symbol,
        language)."""
        wire: dict[str, Any] = {
            "repo": self.repo,
            "relPath": self.rel_path,
            "containerPath": self.container_path,
            "hostPath": self.host_path,
            "score": self.score,
            "chunk": self.chunk,
            "chunkId": self.chunk_id,
            "modelId": self.model_id,
            "lineCount": self.line_count,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "matchedBy": self.matched_by,
        }
        if self.host_path_warning:
            wire["hostPathWarning"] = self.host_path_warning
        if self.symbol:
            wire["symbol"] = self.symbol
        if self.language:
            wire["language"] = self.language
        return wire


@dataclass(frozen=True)
class FileSummary:
    """The matches of one file together; `highest_match` is the smallest distance (sic, §4.4.9)."""

    host_path: str
    highest_match: float | None
    chunk_count: int
    line_count: int | None
    host_path_warning: str | None = None
    repo: str | None = None
    model_id: str | None = None

    def as_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "hostPath": self.host_path,
            "highestMatch": self.highest_match,
            "chunkCount": self.chunk_count,
            "lineCount": self.line_count,
        }
        optional = {
            "hostPathWarning": self.host_path_warning,
            "repo": self.repo,
            "modelId": self.model_id,
        }
        return wire | {key: value for key, value in optional.items() if value}


@dataclass(frozen=True)
class SearchResult:
    """The answer to a SearchQuery. Matches keep the index's order; nothing re-sorts them.

    `weaker` counts the candidates beyond the cutoff that are not among the matches: the page tells
    of them, the wire does not. `degraded`: as in Found; on the wire only where it says something.
    """

    matches: tuple[Match, ...]
    files: tuple[FileSummary, ...]
    model_id: str
    weaker: int = 0
    degraded: str = ""

    def as_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "results": [match.as_wire() for match in self.matches],
            "modelId": self.model_id,
            "files": [summary.as_wire() for summary in self.files],
        }
        return wire | ({"degraded": self.degraded} if self.degraded else {})
