"""Finds the eligible files of a folder, and the reason for each other file.

In a git work tree, the files are those that git tracks below the folder, and those that it neither
tracks nor ignores; elsewhere, those that no `.gitignore` file excludes. Each is listed once: as a
Candidate, or as Skipped with a reason.
"""

import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path

from apps.code.chunking import digest_of, is_utf8
from apps.code.notebooks import MAX_NOTEBOOK_BYTES, is_notebook_path
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.index.root_directory import (
    SPECIAL,
    SYMBOLIC_LINK,
    UNREADABLE,
    RootDirectory,
    SpecialFile,
    content_of,
    is_unreadable,
    read_up_to,
    reason_of,
)
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery.dirty import is_dirty
from apps.ingest.discovery.eligibility import SCAN_BYTES, Rules
from apps.ingest.discovery.git_index import INDEX_MISSING, NOTHING_TRACKED, lacks_index
from apps.ingest.discovery.own_data import refuse_own_data
from apps.ingest.discovery.repository import find_repository
from apps.ingest.discovery.selection import select
from apps.ingest.discovery.tracked import Tracked
from apps.ingest.discovery.walk import Walk
from apps.ingest.types import Candidate, Discovery, FileStat, ListedFile, Skipped

BAD_NAME = "Name is not UTF-8"
WHOLE_ROOT = "./"
# A file that changed within this time may be written again without a new time stamp (the "racy"
# case of git's index).
SETTLE_NS = 2_000_000_000
_PATH = attrgetter("path")


def discover(
    root: Path,
    known: Mapping[str, FileStat] | None = None,
    check: Check = never_cancelled,
    *,
    plain: bool = False,
    only: Collection[str] | None = None,
) -> Discovery:
    """Return the eligible and the skipped files of a folder.

    known: path → state of files that were eligible; the content of an unchanged file is not read
    check: called before each file
    plain: walk the folder, even if it or a folder below it is a git repository
    only: paths, relative to the root, that are looked at, with everything below them; None for all.
        Of a whole discovery, the result has the files at these paths and below them, and the
        skipped folders above them. `left_out` has no other files either

    Raises NotFound, InvalidInput (NOT_DIRECTORY, NOT_READABLE, OWN_DATA), and Unavailable
    GIT_FAILED if the git repository cannot be read or is refused.
    """
    refuse_own_data(root)
    with open_root(root) as directory:
        walk, tracked = _walk(directory, root, check, plain=plain, only=only)
        repository = tracked.repository
        if repository and tracked.is_empty and lacks_index(repository):
            return Discovery((), (), INDEX_MISSING)
        classifier = Classifier(directory, walk.rules, known or {}, time.time_ns() - SETTLE_NS)
        classified = sorted(classifier.classify_all(walk.files(tracked), check), key=_PATH)
    files = tuple(item for item in classified if isinstance(item, Candidate))
    skipped = tuple(item for item in classified if isinstance(item, Skipped))
    left_out = walk.left_out.total()
    nothing = repository is not None and tracked.is_empty and not files and left_out.text
    found = Discovery(files, skipped, NOTHING_TRACKED if nothing else "", left_out)
    if tracked.index is not None:
        found = replace(found, dirty=is_dirty(root, tracked.index, found, check))
    return found


def left_out_at(root: Path, only: Collection[str], *, plain: bool = False) -> frozenset[str]:
    """Return which files and folders at some paths or below them have no row, or are not entered.
    Those of folders end with a slash. No file is read, except for rules.

    The files are not all of them if they are many. Parameters and errors are those of `discover`.
    """
    with open_root(root) as directory:
        walk, tracked = _walk(directory, root, never_cancelled, plain=plain, only=only)
        folders = {file.path for file in walk.files(tracked) if file.path.endswith("/")}
    return frozenset(folders.union(path for path, _ in walk.left_out.total().names))


def count_files(root: Path, most: int) -> int:
    """Return the number of files that a discovery would look at, `most` + 1 at most. No file is
    read. Raises as `discover`."""
    with open_root(root) as directory:
        walk, tracked = _walk(directory, root, never_cancelled, plain=False, only=None)
        return sum(1 for _ in islice(walk.files(tracked), most + 1))


def _walk(
    directory: RootDirectory, root: Path, check: Check, *, plain: bool, only: Collection[str] | None
) -> tuple[Walk, Tracked]:
    selection = select(only)
    tracked = Tracked(None if plain else find_repository(root), root, check, selection)
    nested = None if plain else config().ingest_nested
    rules, untracked = Rules.of(root), config().ingest_untracked
    return Walk(directory, root, rules, untracked, nested, selection, check), tracked


def open_root(root: Path) -> RootDirectory:
    """Open a folder. Raises NotFound and InvalidInput (NOT_DIRECTORY, NOT_READABLE)."""
    try:
        if root.is_dir() and not os.access(root, os.R_OK | os.X_OK):
            raise PermissionError(errno.EACCES, UNREADABLE)
        return RootDirectory(root)
    except FileNotFoundError:
        raise NotFound(f"There is no folder {root}") from None
    except NotADirectoryError:
        raise InvalidInput(f"Not a folder: {root}", code="NOT_DIRECTORY") from None
    except OSError as error:
        raise InvalidInput(f"Not readable: {root}", code="NOT_READABLE") from error


@dataclass(frozen=True)
class Classifier:
    """Decides for each listed file whether it is eligible."""

    directory: RootDirectory
    rules: Rules
    known: Mapping[str, FileStat]  # as in `discover`
    settled_before_ns: int  # start of SETTLE_NS

    def classify_all(
        self, listed: Iterable[ListedFile], check: Check
    ) -> Iterator[Candidate | Skipped]:
        for file in listed:
            check()
            yield self.classify(file)

    def classify(self, listed: ListedFile) -> Candidate | Skipped:
        path = listed.path
        # Rows and JSON cannot contain bytes that are not UTF-8.
        shown = path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")
        if path.endswith("/") or not path:
            return Skipped(shown or WHOLE_ROOT, listed.reason, 0, listed.unreadable)
        try:
            status = listed.status or self.directory.stat(path)
        except OSError as error:
            unreadable = not listed.reason and is_unreadable(error)
            return Skipped(shown, listed.reason or reason_of(error), 0, unreadable)
        reason = listed.reason or _refuse_kind(status) or (BAD_NAME if shown != path else None)
        reason = reason or self.rules.refuse_name(path, chosen=listed.chosen)
        reason = reason or self._refuse_size(path, status.st_size)
        if reason:
            return Skipped(shown, reason, status.st_size)
        known = self.known.get(path)
        if known is not None and self._is_unchanged(status, known):
            return Candidate(path, known)
        return self._by_content(listed)

    def _refuse_size(self, path: str, size: int) -> str | None:
        reason = self.rules.refuse_size(size)
        # Of a notebook the size of its cells counts, which its content tells.
        is_read = reason and size <= MAX_NOTEBOOK_BYTES and is_notebook_path(path)
        return None if is_read else reason

    def _by_content(self, listed: ListedFile) -> Candidate | Skipped:
        path = listed.path
        try:
            descriptor, status = self.directory.open(path)
        except SpecialFile:
            return Skipped(path, SPECIAL, 0)
        except OSError as error:
            return Skipped(path, reason_of(error), 0, is_unreadable(error))
        try:
            is_notebook = is_notebook_path(path)
            limit = MAX_NOTEBOOK_BYTES if is_notebook else SCAN_BYTES
            content = read_up_to(descriptor, limit + 1)
        except OSError as error:
            return Skipped(path, reason_of(error), status.st_size, is_unreadable(error))
        finally:
            os.close(descriptor)
        is_whole = len(content) <= limit
        if is_notebook:
            content = content_of(path, content)
            if reason := self.rules.refuse_size(len(content)):
                return Skipped(path, reason, status.st_size)
        head = content[:SCAN_BYTES]
        if reason := self.rules.refuse_content(path, head):
            return Skipped(path, reason, status.st_size)
        reason = self.rules.refuse_kind(path, head)
        if reason and not listed.chosen:
            return Skipped(path, reason, status.st_size)
        # Without the choice it is skipped, so its content is read each time.
        is_settled = not reason and status.st_ctime_ns < self.settled_before_ns
        changed = status.st_ctime_ns if is_settled else 0
        file_stat = FileStat(status.st_size, status.st_mtime_ns, changed)
        # So a file that another root has is read once.
        digest = digest_of(content) if is_whole and is_utf8(content) else ""
        return Candidate(path, file_stat, digest)

    def _is_unchanged(self, status: os.stat_result, known: FileStat) -> bool:
        """Whether a file was not written to since it had the state `known`."""
        changed = status.st_ctime_ns
        return (
            known.ctime_ns == changed != 0
            and changed < self.settled_before_ns
            and known.size == status.st_size
            and known.mtime_ns == status.st_mtime_ns
        )


def _refuse_kind(status: os.stat_result) -> str | None:
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISLNK(status.st_mode):
        return SYMBOLIC_LINK
    return SPECIAL
