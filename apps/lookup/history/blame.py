"""Blame: which commit each line comes from."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from apps.lookup.history.commits import commits_with
from apps.lookup.history.subject import Subject
from apps.lookup.symbols.types import Place
from apps.retrieval.paging import PAGE, Page, Pager

# Lines of a page: git goes back through the commits of these only.
MOST_LINES = 120
NO_LINES = "The file has no such lines."
_HEAD = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) \d+ (\d+)")


def blame(subject: Subject) -> dict[str, Any]:
    """The ingested lines, those that follow each other and have one commit together."""
    query = subject.query
    pager = Pager.of("History", query, [subject.root])
    commit, lines = subject.text_commit(), subject.lines()
    pager.check(commit)
    first, last = subject.span or (1, None)
    end = min(last or len(lines), len(lines))
    start = pager.start[0] if pager.start else first
    until = min(end, start + MOST_LINES - 1)
    if until < start:
        return {"to": commit, "results": [], "hint": NO_LINES}
    numbers = subject.numbers_at(commit, lines)[start - 1 : until]
    by_number = _commits_of_lines(subject, commit, numbers)
    ids = [by_number.get(number, "") for number in numbers]
    rows = _rows(subject, ids, lines, start)[: query.limit]

    def after(count: int) -> str:
        return pager.cursor((rows[count - 1]["endLine"] + 1,), commit)

    more = rows[-1]["endLine"] < end
    return {"to": commit, "results": rows, PAGE: Page(len(rows), after, more, "lines")}


def _commits_of_lines(subject: Subject, commit: str, numbers: Sequence[int]) -> dict[int, str]:
    """The id of the commit of each line of a commit's text, by its number."""
    there = list(filter(None, numbers))
    if not there:
        return {}
    span = f"-L{min(there)},{max(there)}"
    path = subject.in_repository(subject.path)
    output = subject.git.run("blame", "--porcelain", span, commit, "--", path)
    heads = (_HEAD.match(line) for line in output.split(b"\n") if line[:1] != b"\t")
    return {int(head[2]): head[1].decode() for head in heads if head}


def _rows(
    subject: Subject, ids: Sequence[str], lines: Sequence[str], start: int
) -> list[dict[str, Any]]:
    """A row for each run of lines that have one commit, "" for what is not committed."""
    commits = commits_with(subject.git, dict.fromkeys(filter(None, ids)))
    place = Place(subject.root, subject.path, "").as_wire()
    rows = []
    for commit, group in groupby(enumerate(ids, start), key=lambda pair: pair[1]):
        span = [number for number, _ in group]
        facts: dict[str, Any] = {"kind": "uncommitted"}
        if commit in commits:
            facts = {"kind": "lines", **commits[commit].as_wire()}
        text = "\n".join(lines[span[0] - 1 : span[-1]])
        rows.append(place | facts | {"startLine": span[0], "endLine": span[-1], "chunk": text})
    return rows
