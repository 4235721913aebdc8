"""What a folder holds that is worth ingesting, and why the rest is not.

The root is the folder asked for; nothing climbs out of it. Inside a git work tree its files are the
tracked ones, elsewhere those that a walk finds. Each is named exactly once: as a Candidate, or as
Skipped with a reason.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.index.root_directory import (
    SPECIAL,
    SYMBOLIC_LINK,
    UNREADABLE,
    RootDirectory,
    SpecialFile,
    is_unreadable,
    read_file,
    read_up_to,
    reason_of,
)
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery.eligibility import LOOK_BYTES, Rules
from apps.ingest.discovery.git_index import tracked_files, why_nothing
from apps.ingest.discovery.own_data import OwnData, refuse_own_data
from apps.ingest.discovery.repository import find_repository
from apps.ingest.discovery.walk import Found, from_git, walk
from apps.ingest.types import Candidate, Discovery, FileStat, Skipped

__all__ = ["discover", "read_file"]

SUBMODULE = "Submodule"
BAD_NAME = "Name is not UTF-8"
WHOLE_ROOT = "./"
# A file changed so lately may be written to again without another time to show for it.
YOUNG_NS = 2_000_000_000
_PATH = attrgetter("path")


def discover(
    root: Path,
    known: Mapping[str, FileStat] | None = None,
    check: Check = never_cancelled,
    *,
    plain: bool = False,
) -> Discovery:
    """The eligible files of a folder and the skipped ones, both sorted by path. `known` are files
    that were eligible: those that nobody has written to since are not looked into again. `check` is
    called between files, of which there may be very many; what it raises ends the search. A `plain`
    folder is walked, whatever git knows of it.

    Raises NotFound, InvalidInput (NOT_DIRECTORY, NOT_READABLE, OWN_DATA) for a folder that is not
    listed and Unavailable (GIT_FAILED) for one in a git repository that is not read.
    """
    refuse_own_data(root)
    with open_root(root) as beneath:
        repository = None if plain else find_repository(root)
        rules = _rules(root, from_git=repository is not None)
        if repository is None:
            found = walk(beneath, rules, check)
        else:
            tracked = tracked_files(repository, root, check)
            if not tracked:
                return Discovery((), (), why_nothing(repository))
            found = from_git(sorted(tracked), rules)
        judge = _Judge(beneath, rules, known or {}, time.time_ns() - YOUNG_NS)
        return _sorted(judge.verdicts(found, check))


def open_root(root: Path) -> RootDirectory:
    """A folder held open. Raises NotFound and InvalidInput (NOT_DIRECTORY, NOT_READABLE)."""
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


def _rules(root: Path, *, from_git: bool) -> Rules:
    settings = config()
    return Rules.of(
        include=settings.ingest_include,
        exclude=settings.ingest_exclude,
        max_bytes=settings.ingest_max_file_bytes,
        tracked=from_git,
        own=OwnData.beneath(root),
    )


def _sorted(judged: Iterable[Candidate | Skipped]) -> Discovery:
    files: list[Candidate] = []
    skipped: list[Skipped] = []
    for item in judged:
        if isinstance(item, Candidate):
            files.append(item)
        else:
            skipped.append(item)
    files.sort(key=_PATH)
    skipped.sort(key=_PATH)
    return Discovery(tuple(files), tuple(skipped))


@dataclass(frozen=True)
class _Judge:
    """Decides on one file after the other; `young` is the time from which on a file is so."""

    beneath: RootDirectory
    rules: Rules
    known: Mapping[str, FileStat]
    young: int

    def verdicts(self, found: Iterable[Found], check: Check) -> Iterator[Candidate | Skipped]:
        for each in found:
            check()
            yield self.verdict(each)

    def verdict(self, found: Found) -> Candidate | Skipped:
        shown = _printable(found.path)
        if found.path.endswith("/") or not found.path:
            return Skipped(shown or WHOLE_ROOT, found.reason, 0, found.unreadable)
        try:
            status = self.beneath.stat(found.path)
        except OSError as error:
            unreadable = not found.reason and is_unreadable(error)
            return Skipped(shown, found.reason or reason_of(error), 0, unreadable)
        reason = found.reason or _refuse_kind(status) or (BAD_NAME if shown != found.path else None)
        reason = (
            reason
            or self.rules.refuse_name(found.path)
            or self.rules.refuse_size(found.path, status.st_size)
        )
        if reason:
            return Skipped(shown, reason, status.st_size)
        stamp = self._stamp(status)
        if stamp.is_unchanged(self.known.get(found.path)):
            return Candidate(found.path, stamp)
        return self._by_content(found.path)

    def _by_content(self, path: str) -> Candidate | Skipped:
        try:
            descriptor, status = self.beneath.open(path)
        except SpecialFile:
            return Skipped(path, SPECIAL, 0)
        except OSError as error:
            return Skipped(path, reason_of(error), 0, is_unreadable(error))
        try:
            head = read_up_to(descriptor, LOOK_BYTES)
        except OSError as error:
            return Skipped(path, reason_of(error), status.st_size, is_unreadable(error))
        finally:
            os.close(descriptor)
        if reason := self.rules.refuse_content(path, head):
            return Skipped(path, reason, status.st_size)
        return Candidate(path, self._stamp(status))

    def _stamp(self, status: os.stat_result) -> FileStat:
        changed = status.st_ctime_ns
        return FileStat(status.st_size, status.st_mtime_ns, changed if changed < self.young else 0)


def _refuse_kind(status: os.stat_result) -> str | None:
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISLNK(status.st_mode):
        return SYMBOLIC_LINK
    return SUBMODULE if stat.S_ISDIR(status.st_mode) else SPECIAL


def _printable(path: str) -> str:
    """A name with bytes that are no UTF-8 shows them as U+FFFD; rows and JSON hold no others."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")
