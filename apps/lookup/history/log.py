"""The log: commits that changed a repository, a path, or lines, latest first."""

from typing import Any

from apps.lookup.history.commits import Commit, commits_of
from apps.lookup.history.subject import Subject
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.repositories import repo_id

MOST = 2_000  # commits that pages reach
NOT_COMMITTED = "These lines are not in that commit: they are not committed, or newer."
LATEST_ONLY = f"Only the latest {MOST:,} commits are listed: set `path` or `to`."
NARROW = "path, lines, from and to"


def log(subject: Subject) -> dict[str, Any]:
    """The commits, those of merges only if they changed something themselves."""
    query = subject.query
    pager = Pager.of("History", query, [subject.root])
    first = pager.start[0] if pager.start else 0
    most = min(MOST, first + query.limit + 1)
    lines, to = _lines_at(subject)
    since = [f"^{subject.commit(query.since)}"] if query.since else []
    if lines == "":
        return {"to": to, "results": [], "hint": NOT_COMMITTED}
    where = ["-s", lines] if lines else []
    paths = [] if lines else subject.pathspec
    found = commits_of(subject.git, f"--max-count={most}", *where, to, *since, *paths)
    if len(found) == MOST:
        subject.notes.append(LATEST_ONLY)
    shown, page = pager.page(found, query.limit, _id, narrow=NARROW)
    rows = [_fields(subject) | one.as_wire() for one in shown]
    return {"to": to, "results": rows, PAGE: page}


def _id(commit: Commit) -> str:
    return commit.id


def _lines_at(subject: Subject) -> tuple[str | None, str]:
    """The argument with the lines, None for all and "" if the commit has none of them; and the
    commit to begin at."""
    if not subject.span:
        return None, subject.commit(subject.query.to or "HEAD")
    commit, lines = subject.text_commit(), subject.lines()
    first, last = subject.span
    numbers = list(filter(None, subject.numbers_at(commit, lines)[first - 1 : last]))
    if not numbers:
        return "", commit
    path = subject.in_repository(subject.path)
    return f"-L{min(numbers)},{max(numbers)}:{path}", commit


def _fields(subject: Subject) -> dict[str, Any]:
    """The repository of a row, and the path if there is one."""
    path = {"relPath": subject.path} if subject.path else {}
    return {"repo": repo_id(subject.root), "kind": "commit", **path}
