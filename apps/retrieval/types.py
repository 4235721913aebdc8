"""A question to the index and what comes back, as values that check themselves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeinfo.errors import InvalidInput

DEFAULT_LIMIT = 5
MAX_LIMIT = 20


@dataclass(frozen=True)
class SearchQuery:
    """What to look for. `repository` is a repository id (a root's name); None asks all."""

    text: str
    repository: str | None = None
    limit: int = DEFAULT_LIMIT

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SearchQuery":
        """Check `{query, repository?, limit?}` (contracts.md §4.2; unknown keys are ignored).

        Raises InvalidInput whose details.details lists everything that is wrong.
        """
        problems: list[str] = []
        text = data.get("query")
        if not isinstance(text, str) or not text.strip():
            problems.append("query is required")
        repository = data.get("repository") or None
        if repository is not None and not (isinstance(repository, str) and repository.strip()):
            problems.append("repository must be a non-empty string when provided")
        limit = data.get("limit") or DEFAULT_LIMIT
        if isinstance(limit, bool) or not (
            isinstance(limit, int) or (isinstance(limit, float) and limit.is_integer())
        ):
            problems.append("limit must be an integer")
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        return cls(
            text=_encodable(str(text)).strip(),
            repository=_encodable(str(repository)).strip() if repository else None,
            limit=max(1, min(MAX_LIMIT, int(limit))),
        )

    def as_log(self) -> dict[str, Any]:
        """What may be logged of a question: its scope and size, not its words."""
        return {"repository": self.repository or "all", "limit": self.limit}


def _encodable(text: str) -> str:
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

    @property
    def distance(self) -> float:
        """To sort by: the score, or farther than any where there is none."""
        return math.inf if self.score is None else self.score


@dataclass(frozen=True)
class Match(Row):
    """A row that survived the pipeline. `chunk` may be cut; `line_count` counts what is left."""

    line_count: int | None = None

    def as_wire(self) -> dict[str, Any]:
        """One entry of `results` (contracts.md §4.3, plus startLine, endLine, symbol, language)."""
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
    of them, the wire does not.
    """

    matches: tuple[Match, ...]
    files: tuple[FileSummary, ...]
    model_id: str
    weaker: int = 0

    def as_wire(self) -> dict[str, Any]:
        return {
            "results": [match.as_wire() for match in self.matches],
            "modelId": self.model_id,
            "files": [summary.as_wire() for summary in self.files],
        }
