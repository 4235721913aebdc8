"""The log: commits that changed a repository, a path, or lines, latest first."""

from collections.abc import Iterator, Sequence
from typing import Any

from apps.core.errors import Unavailable
from apps.lookup.history.commits import Commit, commits_of
from apps.lookup.history.subject import Subject
from apps.lookup.symbols.types import filled
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.repositories import repo_id

MOST = 2_000  # commits that pages reach
MOST_NAMES = 5  # earlier ones of a file
# Changed files that a commit takes away, and adds: if they are more, git would compare each with
# each for many seconds, and only unchanged ones, or of the same name, are found to be renamed.
MAX_RENAMED = 300
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
    if lines:
        commits = commits_of(subject.git, f"--max-count={most}", "-s", lines, to, *since)
        found = [(one, "") for one in commits]
    else:
        found = list(_of_path(subject, to, since, most))
    if len(found) == MOST:
        subject.notes.append(LATEST_ONLY)
    shown, page = pager.page(found, query.limit, lambda row: row[0].id, narrow=NARROW)
    base = {"repo": repo_id(subject.root), "kind": "commit", **filled(relPath=subject.path)}
    rows = [base | one.as_wire() | filled(oldPath=path) for one, path in shown]
    return {"to": to, "results": rows, PAGE: page}


def _of_path(
    subject: Subject, to: str, since: Sequence[str], most: int
) -> Iterator[tuple[Commit, str]]:
    """Commits of a path, and below the one that gave a file its name, those of the name before:
    the path that the file has then, "" for that of the query.

    `git log --follow` does the same and compares all files of all commits for it.
    """
    path, names = subject.path, 0
    while most > 0:
        inside = subject.in_repository(path)
        paths = ["--", inside] if inside else []
        found = commits_of(subject.git, f"--max-count={most}", to, *since, *paths)
        yield from ((one, path if names else "") for one in found)
        most -= len(found)
        names += 1
        if not found or not path or not inside or most <= 0 or names > MOST_NAMES:
            return
        before = _name_before(subject, found[-1].id, inside)
        to = subject.git.object_id(f"{found[-1].id}^") if before else ""
        path = subject.in_root(before)
        is_inside = before.startswith(subject.above)
        if not to or not is_inside or subject.visible.reasons([path])[path]:
            return


def _name_before(subject: Subject, commit: str, path: str) -> str:
    """The path that a commit renamed to this one; "" for none."""
    renames = ("-M", f"-l{MAX_RENAMED}", "--diff-filter=R", "--name-status")
    try:
        output = subject.git.run("diff-tree", "-r", *renames, "--no-commit-id", "-z", commit)
    except Unavailable:
        return ""  # a partial clone lacks the texts that are compared
    _, *names = output.decode("utf-8", "surrogateescape").split("\0")
    renamed = dict(zip(names[1::3], names[::3], strict=False))
    return renamed.get(path, "")


def _lines_at(subject: Subject) -> tuple[str | None, str]:
    """The argument with the lines, None for all and "" if the commit has none of them; and the
    commit to begin at."""
    if not subject.span:
        return None, subject.commit(subject.query.to or "HEAD")
    commit = subject.text_commit()
    if (span := subject.span_at(commit)) is None:
        return "", commit
    return f"-L{span[0]},{span[1]}:{subject.in_repository(subject.path)}", commit
