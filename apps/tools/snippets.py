"""Cuts long passages to the lines that match best."""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.core.types import JSON
from apps.embedding.words import stems
from apps.retrieval.query import parse_limit, refuse
from apps.retrieval.ranking.rank import query_stems

MAX_LINES = 1_000
# Lines kept above the first matching line.
LEAD_LINES = 2


def best_lines(lines: Sequence[str], query: str, count: int) -> int:
    """Return the index of the first of `count` lines that have most of the query's stems.

    Of equals, the one with more matching lines, then the earliest. 0 if no line matches.
    """
    return best_start(shared_stems(lines, query), count) if len(lines) > count else 0


def shared_stems(lines: Sequence[str], query: str) -> list[set[str]]:
    """The stems of the query that each line has."""
    wanted = set(query_stems(query))
    text = "\n".join(lines).lower()
    near: set[int] = set()  # few lines
    for stem in wanted:
        beginning = stem.removesuffix("y")  # of its words; the stem of `queries` is `query`
        at = text.find(beginning)
        while at >= 0:
            near.add(text.count("\n", 0, at))
            end = text.find("\n", at)
            at = text.find(beginning, end + 1) if end >= 0 else -1
    return [
        wanted.intersection(stems(line)) if at in near else set() for at, line in enumerate(lines)
    ]


def best_start(shared: Sequence[set[str]], count: int) -> int:
    """As `best_lines`, of lines with these stems of the query."""
    last = len(shared) - count
    if last <= 0:
        return 0
    lead = min(LEAD_LINES, count - 1)
    starts = {max(0, min(at - lead, last)) for at, words in enumerate(shared) if words} or {0}

    def value(start: int) -> tuple[int, int, int]:
        inside = shared[start : start + count]
        return len(set().union(*inside)), sum(map(bool, inside)), -start

    return max(starts, key=value)


def parse_snippet_lines(data: Mapping[str, Any]) -> int:
    """Read `{snippet_lines?}`: 1 to MAX_LINES; 0 if it is missing: whole passages. Raises
    InvalidInput."""
    problems: list[str] = []
    value = data.get("snippet_lines")
    count = parse_limit(value, MAX_LINES, MAX_LINES, problems, name="snippet_lines")
    refuse(problems)
    return count if value else 0


def cut(output: JSON, query: str, count: int) -> JSON:
    """Return the output with at most `count` lines of each passage; all of them if it is 0."""
    if not count:
        return output
    return output | {"results": [_cut_row(row, query, count) for row in output["results"]]}


def _cut_row(row: JSON, query: str, count: int) -> JSON:
    lines = row["chunk"].split("\n")
    first = best_lines(lines, query, count)
    kept = lines[first : first + count]
    if len(kept) == len(lines):
        return row
    changed: JSON = {"chunk": "\n".join(kept)}
    if row["startLine"] is not None:
        start = row["startLine"] + first
        changed |= {"startLine": start, "endLine": start + len(kept) - 1}
    if "lineCount" in row:
        changed["lineCount"] = len(kept)
    return row | changed
