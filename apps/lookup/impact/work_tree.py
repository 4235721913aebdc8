"""Compares the work tree with a commit. git is not asked, which would obey the work tree's
attributes and filters: the files are those of a discovery, and have the hashes of its objects."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from apps.code.chunking import decode, lines_of
from apps.code.notebooks import is_notebook_path
from apps.core.errors import CodeinfoError, Unavailable
from apps.index import queries
from apps.index.models import Root
from apps.index.root_directory import read_file
from apps.ingest.discovery.dirty import has_content, is_as_staged
from apps.ingest.discovery.discovery import discover
from apps.ingest.discovery.git_index import Index, Kind, read_index
from apps.ingest.types import Candidate, FileStat
from apps.lookup.history.diff import LINK, SUBMODULE, texts_of
from apps.lookup.history.subject import Subject
from apps.lookup.history.visible import OUTSIDE
from apps.lookup.impact.together import changed_together
from apps.lookup.impact.types import MAX_FILES, ChangeSet, FileSides

# Files that are hashed, as their times differ from those that git noted.
MAX_HASHED = 5_000
FILES_AT_ONCE = 8  # so that git says less than its limit
TOO_MANY = "{:,} files have changed: the first {} are looked at."
NOT_HASHED = "Only the first {:,} files that git has not looked at lately were compared."
LEFT_OUT = "Changed files that the ingest leaves out: {}."
NOTEBOOKS = "Changed notebooks are left out: {}."


def changes_of_work_tree(subject: Subject, base: str) -> ChangeSet:
    """The files that differ between a commit and the work tree, as far as an ingest takes them.

    Raises CommitNotFound, Unavailable (GIT_FAILED, TIMED_OUT), and as `discover`.
    """
    changes = ChangeSet(base=subject.commit(base))
    tree = _tree(subject, changes.base)
    pairs = [*_differing(subject, tree, changes)]
    notebooks = sum(is_notebook_path(path) for path, _, _ in pairs)
    if notebooks:
        changes.notes.append(NOTEBOOKS.format(notebooks))
        pairs = [pair for pair in pairs if not is_notebook_path(pair[0])]
    if len(pairs) > MAX_FILES:
        changes.notes.append(TOO_MANY.format(len(pairs), MAX_FILES))
    pairs = pairs[:MAX_FILES]
    for at in range(0, len(pairs), FILES_AT_ONCE):
        changes.files += _read(subject, pairs[at : at + FILES_AT_ONCE], changes)
    try:
        changes.together = changed_together(subject, [file.path for file in changes.files])
    except Unavailable as error:
        changes.notes.append(f"What changed together before is not known: {error.message}")
    return changes


def _tree(subject: Subject, commit: str) -> dict[str, str]:
    """The files of a commit below the root: path → id of the text."""
    output = subject.git.run("ls-tree", "-r", "-z", "--full-tree", commit, *subject.pathspec)
    tree: dict[str, str] = {}
    for line in output.decode("utf-8", "surrogateescape").split("\0"):
        head, _, path = line.partition("\t")
        if path and not head.startswith((LINK, SUBMODULE)):
            tree[subject.in_root(path)] = head.split(" ")[2]
    return tree


def _differing(
    subject: Subject, tree: Mapping[str, str], changes: ChangeSet
) -> list[tuple[str, str, Candidate | None]]:
    """Path, id of the text in the commit ("" for none), and the file on the disk (None for none) of
    what differs, by path."""
    root, folder = subject.root, Path(subject.root.path)
    found = discover(folder, _known(root))
    index = read_index(subject.git.repository, folder)
    unsure, pairs = 0, list[tuple[str, str, Candidate | None]]()

    @cache
    def is_nested(inner: str) -> bool:
        """Whether a folder is in a repository of its own below the root."""
        above = inner.rpartition("/")[0]
        return inner != "" and (os.path.lexists(folder / inner / ".git") or is_nested(above))

    for file in found.files:
        blob = tree.get(file.path, "")
        if not blob:
            if not is_nested(file.path.rpartition("/")[0]):
                pairs.append((file.path, "", file))
            continue
        entry = index.entries.get(file.path)
        is_staged = entry is not None and is_as_staged(file, entry, index)
        if is_staged and entry is not None and entry.object_id.hex() == blob:
            continue
        if not is_staged:
            unsure += 1
            if unsure > MAX_HASHED:
                continue
            if has_content(folder, file, bytes.fromhex(blob)):
                continue
        pairs.append((file.path, blob, file))
    if unsure > MAX_HASHED:
        changes.notes.append(NOT_HASHED.format(MAX_HASHED))
    there = {file.path for file in found.files}
    gone = [path for path in tree if path not in there and _is_gone(folder, path, index)]
    pairs += [(path, tree[path], None) for path in gone]
    return sorted(_shown(subject, pairs, changes))


def _known(root: Root) -> dict[str, FileStat]:
    rows = queries.live_files(root).ingested()
    columns = rows.values_list("path", "size", "mtime_ns", "ctime_ns")
    return {path: FileStat(*stat) for path, *stat in columns.iterator()}


def _is_gone(folder: Path, path: str, index: Index) -> bool:
    """Whether a file of a commit is not on the disk. A sparse checkout leaves files out."""
    entry = index.entries.get(path)
    is_left_out = entry is not None and entry.kind is Kind.ABSENT
    return not is_left_out and not os.path.lexists(folder / path)


def _shown(
    subject: Subject,
    pairs: Sequence[tuple[str, str, Candidate | None]],
    changes: ChangeSet,
) -> Iterator[tuple[str, str, Candidate | None]]:
    """What may be looked into. Counts the others in a note, but those outside of what a chat may
    look into."""
    reasons = subject.visible.reasons([path for path, _, _ in pairs])
    refused = [reason for reason in reasons.values() if reason and reason != OUTSIDE]
    if refused:
        changes.notes.append(LEFT_OUT.format(len(refused)))
    return (pair for pair in pairs if not reasons[pair[0]])


def _read(
    subject: Subject, pairs: Sequence[tuple[str, str, Candidate | None]], changes: ChangeSet
) -> Iterator[FileSides]:
    """Both texts of some files, but of those whose content an ingest would leave out."""
    root = subject.root
    texts = texts_of(subject, [blob for _, blob, _ in pairs if blob])
    rows = queries.live_files(root).filter(path__in=[path for path, _, _ in pairs])
    encodings = dict(rows.values_list("path", "encoding"))
    for path, blob, file in pairs:
        data = (texts.get(blob), _on_disk(root, file) if file else None)
        is_lost = any(one is None for one, there in zip(data, (blob, file), strict=True) if there)
        if is_lost or any(one and subject.visible.refuse(path, one) for one in data):
            changes.notes.append(f"{path} is left out: its content cannot be shown.")
            continue
        encoding = encodings.get(path, "")
        sides = (None if one is None else lines_of(decode(one, encoding)) for one in data)
        yield FileSides(path, path, *sides)


def _on_disk(root: Root, file: Candidate) -> bytes | None:
    """The content of a file; None if it cannot be read any more."""
    try:
        return read_file(Path(root.path), file.path)
    except CodeinfoError:
        return None
