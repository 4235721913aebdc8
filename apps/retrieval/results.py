"""From candidates to a result: texts, cutoff, fallback, duplicates, caps, summary by file.

The order of the steps is a contract (the table of docs/retrieval.md). Each step is a pure function
that preserves order. Distances are squared L2: lower is better.
"""

import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from apps.core.config import DEFAULT_CUTOFF, config
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.models import Root
from apps.index.paths import map_path
from apps.retrieval.candidates import Candidates, MatchedBy
from apps.retrieval.ranking.rank import RankingQuery
from apps.retrieval.ranking.reasons import Reason
from apps.retrieval.repositories import repo_id, still_current

log = logging.getLogger("codeinfo.retrieval")

MAX_PER_FILE = 2
# How far beyond a lowered cutoff words are evidence: a person who lowers it wants fewer matches.
EVIDENCE_MARGIN = 0.3
_NO_REASONS: Mapping[int, Reason] = {}


@dataclass(frozen=True)
class Match:
    """One passage of a result."""

    repo: str  # repository id
    rel_path: str  # within the repository
    container_path: str  # absolute, as codeinfo sees it
    host_path: str  # absolute, as the user sees it
    chunk: str  # the text; `cut` may shorten it
    chunk_id: str  # hash of the chunk
    model_id: str  # the model that embedded it
    score: float | None = None  # squared L2 distance, lower is better; None: unknown
    host_path_warning: str | None = None  # why `host_path` may be wrong
    start_line: int | None = None  # 1-based; None: unknown
    end_line: int | None = None  # 1-based, included; None: unknown
    symbol: str = ""  # path of the definition that contains the chunk
    language: str = ""  # "" if it is unknown
    matched_by: MatchedBy = "vector"
    line_count: int | None = None  # lines of `chunk` after the cut
    # Beyond the cutoff, but the text has what the query asks for by its words.
    has_evidence: bool = False
    is_weak: bool = False  # no match passed the cutoff; this is one of the best
    reason: Reason | None = None  # for the search page, not on the wire

    @property
    def distance(self) -> float:
        """The score as a sort key: infinity if it is unknown."""
        return math.inf if self.score is None else self.score

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
        if self.is_weak:
            wire["weak"] = True
        if self.host_path_warning:
            wire["hostPathWarning"] = self.host_path_warning
        if self.symbol:
            wire["symbol"] = self.symbol
        if self.language:
            wire["language"] = self.language
        return wire


@dataclass(frozen=True)
class SearchResult:
    """The result of a SearchQuery."""

    matches: tuple[Match, ...]  # in the order of the ranking
    # What was not searched: "", "words only" (no match has a score), or the repositories that lack
    # a part of the index, texts or vectors. On the wire only if it is not empty.
    degraded: str = ""
    # Words of the query that no passage of these repositories has. On the wire only if there are.
    missing_words: tuple[str, ...] = ()
    # Set by `search`:
    model_id: str = ""  # the model that the index is locked to
    # Candidates beyond the cutoff that are not among the matches; for the page, not on the wire.
    weaker: int = 0
    # The ids of roots of which something could not be read; not on the wire.
    unread: frozenset[UUID] = frozenset()

    @property
    def files(self) -> list[dict[str, Any]]:
        """The matches by file, as on the wire."""
        return by_file(self.matches)

    def as_wire(self) -> dict[str, Any]:
        """The output of VectorSearch (contract.md §4.3)."""
        wire: dict[str, Any] = {
            "results": [match.as_wire() for match in self.matches],
            "modelId": self.model_id,
            "files": self.files,
        }
        optional = {"degraded": self.degraded, "missingWords": list(self.missing_words)}
        return wire | {key: value for key, value in optional.items() if value}


def setting_of_cutoff() -> float | None:
    """The greatest squared L2 distance of the settings; None: no cutoff."""
    return None if config().retrieval_cutoff_disabled else config().retrieval_cutoff


# --- texts ----------------------------------------------------------------------------------------


def matches_of(
    candidates: Candidates,
    indexes: Sequence[int],
    reasons: Mapping[int, Reason] = _NO_REASONS,
) -> tuple[list[Match], list[Root]]:
    """The candidates at these indexes with their texts, in that order, and the root of each whose
    text cannot be read. `reasons` are by index.

    Leaves out chunks that were deleted in the meantime.
    """
    chunks = read_chunks((candidates.roots[index], candidates.ids[index]) for index in indexes)
    matches: list[Match] = []
    unread: list[Root] = []
    for index in indexes:
        root = candidates.roots[index]
        chunk = chunks.get((root.id, candidates.ids[index]))
        if chunk is None:
            unread.append(root)
            continue
        score, matched_by = candidates.distance(index), candidates.matched_by(index)
        reason = reasons.get(index)
        match = match_of(root, chunk, score=score, matched_by=matched_by, reason=reason)
        is_evident = candidates.evidence[index] > 0
        matches.append(replace(match, has_evidence=True) if is_evident else match)
    return matches, still_current(unread)


def match_of(
    root: Root,
    chunk: StoredChunk,
    *,
    score: float | None,
    matched_by: MatchedBy = "vector",
    reason: Reason | None = None,
) -> Match:
    """The match of one chunk. `score` is a squared L2 distance; None: unknown."""
    facts = chunk.facts
    mapped = map_path(root, facts.path)
    return Match(
        repo=repo_id(root),
        rel_path=facts.path,
        container_path=mapped.container_path,
        host_path=mapped.host_path,
        host_path_warning=mapped.warning,
        chunk=chunk.text,
        chunk_id=chunk.hash,
        model_id=root.model,
        # JSON has no NaN and no infinity.
        score=score if score is not None and math.isfinite(score) else None,
        start_line=facts.start_line,
        end_line=facts.end_line,
        symbol=facts.symbol,
        language=facts.language,
        matched_by=matched_by,
        reason=reason,
    )


# --- limits ---------------------------------------------------------------------------------------


def apply_limits(
    candidates: Sequence[Match],
    *,
    cutoff: float | None,
    fallback: int,
    chunk_chars: int,
    total_chars: int,
    ranked: bool = False,
) -> tuple[Match, ...]:
    """Apply all steps (contract.md §4.4). Return the matches in their order.

    cutoff: the greatest squared L2 distance; None: no cutoff.
    fallback: matches to return if none passes the cutoff.
    chunk_chars, total_chars: characters of one text, and of all texts.
    ranked: the best match is the first; otherwise it is the nearest.
    """
    log_score_source(candidates, ranked=ranked)
    chosen = [match for match in candidates if passes(match, cutoff)]
    chosen = chosen or fallback_of(candidates, fallback, ranked=ranked)
    chosen = best_per_file(without_duplicates(chosen), ranked=ranked)
    matches = capped([cut(match, chunk_chars) for match in chosen], total_chars)
    context = {"cutoff": cutoff, "candidates": len(candidates), "results": len(matches)}
    log.debug("vector search pipeline", extra={"context": context})
    return matches


def log_score_source(matches: Sequence[Match], *, ranked: bool = False) -> None:
    """Log the range of the scores, and for ranked matches how many have words of the query
    (contract.md §4.6)."""
    scores = [match.score for match in matches if match.score is not None]
    context: dict[str, object] = {
        "tool": "VectorSearch",
        "scoreSource": "distances" if scores else "none",
        "scoreCount": len(scores),
    }
    if scores:
        context |= {"scoreMin": min(scores), "scoreMax": max(scores)}
    if ranked:
        context |= {"mode": "hybrid", "withWords": sum(m.matched_by != "vector" for m in matches)}
    log.info("vector search score source", extra={"context": context})


def passes(match: Match, cutoff: float | None) -> bool:
    """Return True if there is no cutoff, the distance is within it, or the words are evidence.

    If the distance is unknown because the vectors are unavailable, any word of the query is enough.
    """
    if cutoff is None or match.distance <= cutoff or match.has_evidence:
        return True
    return match.score is None and match.matched_by != "vector"


def with_evidence(
    matches: Sequence[Match], query: RankingQuery, cutoff: float | None
) -> list[Match]:
    """Look for evidence in the matches with words of the query that are beyond the cutoff; if it is
    lower than the default, by at most EVIDENCE_MARGIN. One without a vector is left out without
    evidence; if no other is left, a few are weak."""
    if cutoff is None:
        return list(matches)
    most = cutoff + EVIDENCE_MARGIN if cutoff < DEFAULT_CUTOFF else math.inf

    def is_evident(match: Match) -> bool:
        if match.matched_by == "vector" or not cutoff < match.distance <= most:
            return False
        text = f"{match.rel_path} {match.symbol} {match.chunk}"
        return match.has_evidence or query.is_answered_by(text)

    evident = [is_evident(match) for match in matches]
    chosen = [
        match if match.has_evidence == has_evidence else replace(match, has_evidence=has_evidence)
        for match, has_evidence in zip(matches, evident, strict=True)
        if match.score is not None or has_evidence
    ]
    few = matches[: config().retrieval_fallback_chunks]
    return chosen or [replace(match, is_weak=True) for match in few]


def fallback_of(matches: Sequence[Match], count: int, *, ranked: bool) -> list[Match]:
    """The nearest matches if none passes the cutoff, marked as weak. Ranked matches come nearest
    first, others in their order."""
    chosen = nearest_of(matches, count)
    if ranked:
        chosen.sort(key=lambda match: match.distance)
    return [replace(match, is_weak=True) for match in chosen]


def nearest_of(matches: Sequence[Match], count: int) -> list[Match]:
    """The `count` nearest matches in their order. A match without a score is the farthest. Of ties
    the first is the nearest."""
    return [matches[i] for i in _best(matches, range(len(matches)), count, ranked=False)]


def _best(
    matches: Sequence[Match], indexes: Sequence[int], count: int, *, ranked: bool
) -> list[int]:
    if ranked:
        return list(indexes[:count])
    return sorted(sorted(indexes, key=lambda i: (matches[i].distance, i))[:count])


def without_duplicates(matches: Sequence[Match]) -> list[Match]:
    """Drop matches with the id or the text of an earlier match of the same file."""
    keys: set[Hashable] = set()
    distinct = []
    for match in matches:
        file = (match.repo, match.rel_path)
        new = {(file, "id", match.chunk_id), (file, "text", match.chunk)}
        if keys.isdisjoint(new):
            keys |= new
            distinct.append(match)
    return distinct


def best_per_file(matches: Sequence[Match], *, ranked: bool = False) -> list[Match]:
    """The MAX_PER_FILE best matches of each file, in their order."""
    files: dict[Hashable, list[int]] = {}
    for i, match in enumerate(matches):
        files.setdefault((match.repo, match.rel_path), []).append(i)
    chosen: set[int] = set()
    for indexes in files.values():
        chosen.update(_best(matches, indexes, MAX_PER_FILE, ranked=ranked))
    return [match for i, match in enumerate(matches) if i in chosen]


def cut(match: Match, chars: int) -> Match:
    """The match with at most `chars` characters of text, and with the line count of that text."""
    chunk = match.chunk[:chars]
    return replace(match, chunk=chunk, line_count=count_lines(chunk))


def count_lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def capped(matches: Sequence[Match], chars: int) -> tuple[Match, ...]:
    """The matches before the first that exceeds the cap. Later ones are left out even if they would
    fit."""
    total = 0
    for i, match in enumerate(matches):
        total += len(match.chunk)
        if total > chars:
            return tuple(matches[:i])
    return tuple(matches)


def by_file(matches: Iterable[Match]) -> list[dict[str, Any]]:
    """The entries of `files` (contract.md §4.4), sorted by code points. Leaves out matches without
    a host path."""
    files: dict[str, list[Match]] = {}
    for match in matches:
        if match.host_path:
            files.setdefault(match.host_path, []).append(match)
    return [_summary(path, files[path]) for path in sorted(files)]


def _summary(host_path: str, matches: Sequence[Match]) -> dict[str, Any]:
    counts = [match.line_count for match in matches if match.line_count is not None]
    first = matches[0]
    wire: dict[str, Any] = {
        "hostPath": host_path,
        # The smallest distance, in spite of the name.
        "highestMatch": min((m.score for m in matches if m.score is not None), default=None),
        "chunkCount": len(matches),
        "lineCount": sum(counts) if counts else None,
    }
    optional = {
        "hostPathWarning": next((m.host_path_warning for m in matches if m.host_path_warning), ""),
        "repo": first.repo,
        "modelId": first.model_id,
    }
    return wire | {key: value for key, value in optional.items() if value}


def count_weaker(
    candidates: Sequence[Match], matches: Sequence[Match], cutoff: float | None
) -> int:
    """The number of candidates beyond the cutoff that are not among the matches."""
    shown = {(match.repo, match.rel_path, match.chunk_id) for match in matches}
    beyond = [candidate for candidate in candidates if not passes(candidate, cutoff)]
    return sum(
        (candidate.repo, candidate.rel_path, candidate.chunk_id) not in shown
        for candidate in beyond
    )
