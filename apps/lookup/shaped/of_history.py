"""Answers about why lines are as they are: the commits that they come from."""

from collections.abc import Iterator
from typing import Any

from apps.core.errors import CodeinfoError
from apps.core.values.times import seconds_of
from apps.lookup.history import HistoryQuery, history
from apps.lookup.relations.types import Relation, one_line
from apps.lookup.shaped.draft import Draft
from apps.lookup.shaped.of_files import file_asked_for
from apps.lookup.symbols.types import Place
from apps.retrieval.paging import PAGE
from apps.retrieval.repositories import repo_id

# Commits, and characters of the message of one.
MAX_COMMITS, MAX_MESSAGE = 8, 300
MAX_LINES = 100  # runs of lines that are asked for
SHORT = 10
NOT_COMMITTED = "Some of these lines are not committed."
MORE_LINES = "Only the first lines were looked at: name lines, as in src/a.py:120-160."
LATEST = "These are the latest {} commits of {}."


def commits(draft: Draft) -> None:
    """Add the commits that lines come from, latest first: those of a definition, of some lines, or
    those that changed a file."""
    question = draft.question
    if question.is_file:
        if lines := question.lines:
            draft.subject = f"{question.name}:{lines[0]}-{lines[1]}"
        if place := file_asked_for(draft):
            _take(draft, place, lines)
        return
    hits = draft.define(question.name, most=1)
    for row in draft.rows[:1]:
        start = (row.place.root, row.place.path, row.line)
        for root, symbol in hits:
            if (root, symbol.file_path, symbol.start_line) == start:
                _take(draft, row.place, (symbol.start_line, symbol.end_line), symbol.path)
                return


def _take(draft: Draft, place: Place, lines: tuple[int, int] | None, symbol: str = "") -> None:
    query = HistoryQuery(
        "blame" if lines else "log",
        repo_id(place.root),
        place.path,
        lines=lines,
        limit=MAX_LINES if lines else MAX_COMMITS,
        areas=tuple(draft.scope.filters.areas),
    )
    try:
        output = history(query)
    except CodeinfoError as error:
        draft.note(error.message)
        return
    draft.note(output.get("notes", ""))
    rows = output["results"]
    if any(row["kind"] == "uncommitted" for row in rows):
        draft.note(NOT_COMMITTED)
    if (page := output.get(PAGE)) and page.more:
        draft.note(MORE_LINES if lines else LATEST.format(len(rows), place.path))
    # Not `add`: a commit may begin where the definition does.
    draft.rows += _latest(place, symbol, rows)


def _latest(place: Place, symbol: str, rows: list[dict[str, Any]]) -> Iterator[Relation]:
    """A row for each commit, with the first lines that come from it."""
    first = {row["commit"]: row for row in reversed(rows) if "commit" in row}
    latest = sorted(first.values(), key=lambda row: seconds_of(row["date"]), reverse=True)
    for row in latest[:MAX_COMMITS]:
        message = " ".join(str(row["message"]).split())
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}…"
        described = f"{row['commit'][:SHORT]} {row['date'][:10]} {row['author']}: {message}"
        text = one_line(str(row.get("chunk", "")).split("\n")[0])
        yield Relation("commit", place, row.get("startLine", 1), text, symbol, described)
