"""Diffs between two commits, a row for each hunk, of the files that may be shown."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from apps.code.notebooks import is_notebook_path
from apps.lookup.git import CommitNotFound
from apps.lookup.history.commits import commits_with
from apps.lookup.history.query import INGEST
from apps.lookup.history.subject import Subject
from apps.lookup.history.visible import OUTSIDE
from apps.lookup.symbols.types import Place, filled
from apps.retrieval.paging import PAGE, Page, Pager, Position

TREES = ("diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
# The tree without files, by the length of an id. git knows it without an object.
EMPTY = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
MOST_FILES = 5_000
# With both texts of 1 MB each, git says less than its limit.
FILES_AT_ONCE = 8
MAX_CHARS = 1_000_000  # of a page; its last row may have more
LINK, SUBMODULE = "120000", "160000"
KINDS = {"A": "added", "D": "deleted", "R": "renamed"}
NOT_A_FILE = "Link or submodule"
SAME = "Both commits are the same. Set from or to: a branch, a tag, an id, HEAD~1."
UNCHANGED = "Nothing that may be shown has changed there."
FIRST = "The commit is the first that is known: all files are new in it."
MERGE = "A merge is compared with its first parent."
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@.*$", re.MULTILINE)
_IDS = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """A changed file, by its paths in the root.

    old, new: ids of both texts; "" if there is none
    """

    kind: str
    path: str
    old_path: str
    old: str
    new: str
    refused: str = ""  # why it is not shown


@dataclass(frozen=True)
class _Hunk:
    """first, last: lines of the new text; last < first if it has none of them"""

    first: int
    last: int
    text: str


def diff(subject: Subject) -> dict[str, Any]:
    """The hunks of the changed files, by path; a file without hunks, as one that is only renamed,
    is a row without lines."""
    query = subject.query
    pager = Pager.of("History", query, [subject.root])
    since, to = _commits(subject)
    pager.check((since, to))
    output: dict[str, Any] = {"from": since, "to": to, "results": []}
    if since == to:
        return output | {"hint": SAME}
    changes = _visible(subject, _changes(subject, since, to))
    # A commit that changed nothing here may be about what may not be looked into.
    if query.to and not query.since and (changes or not subject.pathspec):
        output["commit"] = commits_with(subject.git, [to])[to].as_wire()
    rows, places, more = _rows(subject, changes, (since, to), pager.start)

    def after(count: int) -> str:
        return pager.cursor(places[count - 1], (since, to))

    page = Page(len(rows), after, more, "path, from and to")
    return output | filled(hint="" if rows else UNCHANGED) | {"results": rows, PAGE: page}


def _commits(subject: Subject) -> tuple[str, str]:
    """Both commits. Without `from` it is the parent of `to`; without both it is the one that was
    ingested, and `to` is HEAD."""
    query = subject.query
    to = subject.commit(query.to or "HEAD")
    if query.since or not query.to:
        return subject.commit(query.since or INGEST), to
    try:
        parent = subject.commit(f"{to}^")
    except CommitNotFound:
        subject.notes.append(FIRST)
        return EMPTY[len(to)], to
    if subject.git.object_id(f"{to}^2"):
        subject.notes.append(MERGE)
    return parent, to


def _changes(subject: Subject, since: str, to: str) -> list[Change]:
    """The changed files below the path."""
    output = subject.git.run(*TREES, "--raw", "-z", since, to, *subject.pathspec)
    parts = iter(output.decode("utf-8", "surrogateescape").split("\0"))
    changes: list[Change] = []
    for head in parts:
        if not head.startswith(":"):
            continue
        old_mode, new_mode, old, new, status = head[1:].split(" ")
        old_path = path = subject.in_root(next(parts))
        if status[0] == "R":
            path = subject.in_root(next(parts))
        is_file = not {LINK, SUBMODULE} & {old_mode, new_mode}
        kind = KINDS.get(status[0], "modified")
        refused = "" if is_file else NOT_A_FILE
        changes.append(Change(kind, path, old_path, _id(old), _id(new), refused))
    return changes


def _visible(subject: Subject, changes: Sequence[Change]) -> list[Change]:
    """The changes whose paths may be shown. Counts the others in a note, but those outside of what
    a chat may look into."""
    if len(changes) > MOST_FILES:
        subject.notes.append(f"{len(changes):,} files have changed: {MOST_FILES:,} are looked at.")
    changes = changes[:MOST_FILES]
    paths = {path for change in changes for path in (change.path, change.old_path)}
    reasons = subject.visible.reasons(paths)
    shown: list[Change] = []
    counts: Counter[str] = Counter()
    for change in changes:
        own = change.refused or reasons[change.path] or reasons[change.old_path]
        if not own:
            shown.append(change)
        elif OUTSIDE not in (reasons[change.path], reasons[change.old_path]):
            counts[own] += 1
    if counts:
        why = ", ".join(f"{reason} {count}" for reason, count in counts.most_common(5))
        subject.notes.append(f"Changed files that the ingest leaves out: {why}.")
    return shown


def _rows(
    subject: Subject, changes: Sequence[Change], commits: tuple[str, str], start: Position
) -> tuple[list[dict[str, Any]], list[Position], bool]:
    """The rows from a position on, the position behind each, and whether there are more. A
    position is the number of a file, and of a hunk in it."""
    limit = subject.query.limit
    first, skipped = start if len(start) == 2 else (0, 0)
    rows: list[dict[str, Any]] = []
    places: list[Position] = []
    for begin in range(first, len(changes), FILES_AT_ONCE):
        batch = _by_content(subject, changes[begin : begin + FILES_AT_ONCE])
        hunks = _hunks(subject, batch, commits)
        for number, change in enumerate(batch, begin):
            own = _fitting(subject, change, hunks.get((change.old, change.new), []), commits[1])
            for count, hunk in enumerate(own, 1):
                if number > first or count > skipped:
                    rows.append(_row(subject, change, hunk))
                    places.append((number, count))
        sizes = accumulate(len(row["chunk"]) for row in rows)
        end = min(limit, 1 + sum(size < MAX_CHARS for size in sizes))
        if len(rows) > end:
            return rows[:end], places[:end], True
    return rows, places, False


def _by_content(subject: Subject, changes: Sequence[Change]) -> list[Change]:
    """The changes, with the reason of those whose old or new text may not be shown."""
    ids = dict.fromkeys(one for change in changes for one in (change.old, change.new) if one)
    texts = texts_of(subject, list(ids))
    checked = []
    for change in changes:
        sides = ((change.old_path, change.old), (change.path, change.new))
        reasons = (
            subject.visible.refuse(path, texts[one]) if one in texts else "Too large"
            for path, one in sides
            if one
        )
        checked.append(replace(change, refused=next(filter(None, reasons), "")))
    return checked


def texts_of(subject: Subject, ids: Sequence[str]) -> dict[str, bytes]:
    """The texts with these ids, without those that are too large."""
    if not ids:
        return {}
    git, most = subject.git, subject.visible.max_bytes
    names = "".join(f"{one}\n" for one in ids).encode()
    sizes = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", data=names)
    for line in sizes.splitlines():
        if line.endswith(b" missing"):
            git.run("cat-file", "-e", line.split(b" ")[0].decode())  # raises
    small = [
        line.split(b" ")[0]
        for line in sizes.splitlines()
        if line.split(b" ")[1].isdigit() and int(line.split(b" ")[1]) <= most
    ]
    output = git.run("cat-file", "--batch", data=b"".join(one + b"\n" for one in small))
    texts: dict[str, bytes] = {}
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        name, _, size = output[at:end].split(b" ")
        at = end + 1 + int(size)
        texts[name.decode()] = output[end + 1 : at]
        at += 1
    return texts


def _hunks(
    subject: Subject, changes: Sequence[Change], commits: tuple[str, str]
) -> dict[tuple[str, str], list[_Hunk]]:
    """The hunks of the files that may be shown, by the ids of both texts."""
    hunks: dict[tuple[str, str], list[_Hunk]] = {}
    # Of a few files git might take others for renamed than of all.
    for option, is_renamed in (("-M", True), ("--no-renames", False)):
        own = [one for one in changes if (one.kind == "renamed") == is_renamed and not one.refused]
        paths = {subject.in_repository(path) for one in own for path in (one.path, one.old_path)}
        if paths:
            output = subject.git.run(*TREES, option, "-p", *commits, "--", *sorted(paths))
            # Lines of texts begin with a space, + or -.
            for part in re.split(rb"^diff --git ", output, flags=re.MULTILINE)[1:]:
                if ids := _IDS.search(part):
                    hunks[_id(ids[1].decode()), _id(ids[2].decode())] = list(_hunks_of(part))
    return hunks


def _id(text: str) -> str:
    """The id of a text; "" for the one of zeros, which stands for none."""
    return text if text.strip("0") else ""


def _hunks_of(part: bytes) -> list[_Hunk]:
    heads = list(_HUNK.finditer(part))
    ends = [head.start() for head in heads[1:]] + [len(part)]
    hunks = []
    for head, end in zip(heads, ends, strict=True):
        first, count = int(head[1]), int(head[2] or 1)
        text = part[head.start() : end].decode("utf-8", "replace").rstrip("\n")
        hunks.append(_Hunk(first, first + count - 1, text))
    return hunks


def _fitting(
    subject: Subject, change: Change, hunks: Sequence[_Hunk], to: str
) -> Sequence[_Hunk | None]:
    """The hunks of a change that touch the lines of the query; [None] if it has none at all."""
    if change.refused:
        subject.notes.append(f"{change.path} is left out: {change.refused}.")
        return []
    if subject.span is None:
        return hunks or [None]
    if (span := subject.span_at(to)) is None:
        return []
    return [hunk for hunk in hunks if hunk.first <= span[1] and hunk.last >= span[0]]


def _row(subject: Subject, change: Change, hunk: _Hunk | None) -> dict[str, Any]:
    row = Place(subject.root, change.path, "").as_wire() | {"kind": change.kind}
    if change.kind == "renamed":
        row["oldPath"] = change.old_path
    # The lines of a notebook's file are not those of its text.
    has_lines = hunk and hunk.last >= hunk.first and not is_notebook_path(change.path)
    first, last = (hunk.first, hunk.last) if hunk and has_lines else (None, None)
    return row | {"startLine": first, "endLine": last, "chunk": hunk.text if hunk else ""}
