"""From candidates to an answer: cutoff, fallback, duplicates, caps and the summary by file.

The order of the steps is a contract (docs/retrieval.md has it as a table). Each step is a pure
function that keeps the order of what it keeps. Distances are squared L2: lower is better.
"""

import logging
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from apps.core.config import config
from apps.retrieval.types import FileSummary, Match, Row

log = logging.getLogger("codeinfo.retrieval")

BEST_PER_FILE = 2


@dataclass(frozen=True)
class Limits:
    """How much an answer may hold. `cutoff` None keeps every row; the caps count characters.

    `ranked`: the rows come in a ranking, so the earlier is the better; else the nearer is.
    """

    cutoff: float | None
    fallback: int
    chunk_chars: int
    total_chars: int
    ranked: bool = False

    @classmethod
    def in_force(cls) -> "Limits":
        """What the settings say now."""
        k = config()
        return cls(
            cutoff=None if k.retrieval_cutoff_disabled else k.retrieval_cutoff,
            fallback=k.retrieval_fallback_chunks,
            chunk_chars=k.tool_chunk_max_chars,
            total_chars=k.tool_max_chars,
            ranked=k.retrieval_mode == "hybrid",
        )


def apply(rows: Sequence[Row], limits: Limits) -> tuple[tuple[Match, ...], tuple[FileSummary, ...]]:
    """All the steps. Returns the matches in the order of `rows`, and their summary by file."""
    log_score_source(rows, ranked=limits.ranked)
    kept = within(rows, limits.cutoff) or best(rows, limits.fallback, ranked=limits.ranked)
    kept = without_duplicates(kept)
    kept = best_per_file(kept, ranked=limits.ranked)
    matches = capped([cut(row, limits.chunk_chars) for row in kept], limits.total_chars)
    log.debug(
        "vector search pipeline",
        extra={"context": {**vars(limits), "candidates": len(rows), "results": len(matches)}},
    )
    return matches, by_file(matches)


def log_score_source(rows: Sequence[Row], *, ranked: bool = False) -> None:
    """Say once per query where the scores came from and how they spread; of a ranking, also how
    many rows have the question's words."""
    scores = [row.score for row in rows if row.score is not None]
    context: dict[str, object] = {
        "tool": "VectorSearch",
        "scoreSource": "distances" if scores else "none",
        "scoreCount": len(scores),
    }
    if scores:
        context |= {"scoreMin": min(scores), "scoreMax": max(scores)}
    if ranked:
        context |= {"mode": "hybrid", "withWords": sum(r.matched_by != "vector" for r in rows)}
    log.info("vector search score source", extra={"context": context})


def within(rows: Sequence[Row], cutoff: float | None) -> list[Row]:
    """Rows no further away than the cutoff, and those that have the question's words; without a
    cutoff all rows, those without a score too."""
    return [row for row in rows if passes(row, cutoff)]


def passes(row: Row, cutoff: float | None) -> bool:
    """Whether a row is near enough, or has the question's words, so that it need not be."""
    return cutoff is None or row.matched_by != "vector" or row.distance <= cutoff


def best(rows: Sequence[Row], count: int, *, ranked: bool = False) -> list[Row]:
    """The `count` best rows, in their own order: the first of a ranking, else the nearest.

    No score is worst; of equals the first wins.
    """
    return [rows[i] for i in _best(rows, range(len(rows)), count, ranked=ranked)]


def _best(rows: Sequence[Row], indexes: Sequence[int], count: int, *, ranked: bool) -> list[int]:
    if ranked:
        return list(indexes[:count])
    return sorted(sorted(indexes, key=lambda i: (rows[i].distance, i))[:count])


def without_duplicates(rows: Sequence[Row]) -> list[Row]:
    """Drop a row whose id or text its file already gave. Other files are other buckets."""
    seen: set[Hashable] = set()
    kept = []
    for row in rows:
        bucket = (row.repo, row.rel_path)
        marks = {(bucket, "id", row.chunk_id), (bucket, "text", row.chunk)}
        if seen.isdisjoint(marks):
            seen |= marks
            kept.append(row)
    return kept


def best_per_file(rows: Sequence[Row], *, ranked: bool = False) -> list[Row]:
    """At most two rows a file: the best, in their own order."""
    buckets: dict[Hashable, list[int]] = {}
    for i, row in enumerate(rows):
        buckets.setdefault((row.repo, row.rel_path), []).append(i)
    kept: set[int] = set()
    for indexes in buckets.values():
        kept.update(_best(rows, indexes, BEST_PER_FILE, ranked=ranked))
    return [row for i, row in enumerate(rows) if i in kept]


def cut(row: Row, chars: int) -> Match:
    """The row with at most `chars` characters of its text; its lines are counted after the cut."""
    chunk = row.chunk[:chars]
    return Match(**{**vars(row), "chunk": chunk}, line_count=count_lines(chunk))


def count_lines(text: str) -> int:
    """Lines of a text split at newlines; an empty text has none."""
    return text.count("\n") + 1 if text else 0


def capped(matches: Sequence[Match], chars: int) -> tuple[Match, ...]:
    """Matches up to the first that would pass the cap; smaller ones after it are not tried."""
    total = 0
    for i, match in enumerate(matches):
        total += len(match.chunk)
        if total > chars:
            return tuple(matches[:i])
    return tuple(matches)


def by_file(matches: Iterable[Match]) -> tuple[FileSummary, ...]:
    """One summary per host path, sorted by it (code points); matches without one are left out."""
    files: dict[str, list[Match]] = {}
    for match in matches:
        if match.host_path:
            files.setdefault(match.host_path, []).append(match)
    return tuple(_summary(path, files[path]) for path in sorted(files))


def _summary(host_path: str, matches: Sequence[Match]) -> FileSummary:
    counts = [match.line_count for match in matches if match.line_count is not None]
    first = matches[0]
    return FileSummary(
        host_path=host_path,
        highest_match=min((m.score for m in matches if m.score is not None), default=None),
        chunk_count=len(matches),
        line_count=sum(counts) if counts else None,
        host_path_warning=next((m.host_path_warning for m in matches if m.host_path_warning), None),
        repo=first.repo,
        model_id=first.model_id,
    )
