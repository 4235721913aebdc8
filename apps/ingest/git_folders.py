"""Lists the git repositories beneath the bases, for somebody who has ingested none of them yet.

The search is limited in time, in folders and in depth, and follows no links. What it has not found
can be chosen by its path. Size and language come from git's index, so no file is opened.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from apps.code.languages import known_type
from apps.code.paths import kinds
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.values.surrogates import has_surrogates
from apps.index.types import Check
from apps.ingest.bases import bases
from apps.ingest.discovery.eligibility import BY_NAME, EXCLUDED
from apps.ingest.discovery.git_index import read_index
from apps.ingest.discovery.own_data import refuse_own_data
from apps.ingest.discovery.repository import Repository, find_repository

# Limits of one search.
SECONDS = 2.0
MAX_FOLDERS = 5_000
MAX_ENTRIES = 2_000  # of one folder
MAX_DEPTH = 5
MAX_REPOSITORIES = 200
MAX_LISTED = 30
# Languages of data and documents are not the language of a repository.
NOT_COUNTED = EXCLUDED | BY_NAME
ASIDE = frozenset({"prose", "data"})


@dataclass(frozen=True)
class GitFolder:
    """A repository.

    files, size: tracked files of known types, and their bytes; None if they were not counted.
    language: the name of the language with the most bytes; "" if unknown.
    problem: why it cannot be ingested; "" if it can.
    """

    path: str
    name: str
    files: int | None = None
    size: int | None = None
    language: str = ""
    problem: str = ""


@dataclass(frozen=True)
class GitFolders:
    """The repositories that were found, those used last first.

    is_complete: everything was looked at, and all are listed.
    """

    folders: tuple[GitFolder, ...]
    bases: tuple[str, ...]
    is_complete: bool


class OutOfTime(Exception):
    """The time limit of the search has passed."""


def git_folders(*, leave_out: Iterable[str] = ()) -> GitFolders:
    """Find the repositories beneath the bases. `leave_out`: real paths that are not listed."""
    deadline = time.monotonic() + SECONDS
    search = _Search(deadline)
    hidden = set(leave_out)
    paths = [path for path in search.repositories() if str(path) not in hidden]
    paths.sort(key=lambda path: (-_used_at(path), str(path).casefold()))
    listed = tuple(_described(path, check_until(deadline)) for path in paths[:MAX_LISTED])
    allowed = tuple(map(str, bases()))
    return GitFolders(listed, allowed, search.is_complete and len(paths) <= MAX_LISTED)


@dataclass
class _Search:
    """A breadth-first search for folders with a `.git`: what is near comes first."""

    deadline: float
    is_complete: bool = True

    def repositories(self) -> Iterator[Path]:
        waiting = deque((base, 0) for base in bases())
        seen: set[Path] = set()
        count = 0
        while waiting:
            folder, depth = waiting.popleft()
            if folder in seen:
                continue
            if len(seen) >= MAX_FOLDERS or time.monotonic() >= self.deadline:
                self.is_complete = False
                return
            seen.add(folder)
            inside = self._inside(folder)
            if inside is None:
                count += 1
                yield folder
                if count >= MAX_REPOSITORIES:
                    self.is_complete = False
                    return
            elif depth < MAX_DEPTH:
                waiting.extend((subfolder, depth + 1) for subfolder in inside)
            elif inside:
                self.is_complete = False

    def _inside(self, folder: Path) -> list[Path] | None:
        """The folders to look into; None if the folder is a repository itself."""
        names: list[str] = []
        try:
            refuse_own_data(folder)
            with os.scandir(folder) as entries:
                for number, entry in enumerate(entries):
                    if entry.name == ".git":
                        return None
                    if number >= MAX_ENTRIES:
                        self.is_complete = False
                        break
                    if _is_looked_into(entry):
                        names.append(entry.name)
        except (OSError, CodeinfoError):
            return []
        return [folder / name for name in sorted(names)]


def _is_looked_into(entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".") or entry.name in NOT_COUNTED or has_surrogates(entry.name)
    return not hidden and entry.is_dir(follow_symlinks=False)


def _used_at(folder: Path) -> float:
    """When git last wrote its index, in seconds; 0 if unknown."""
    try:
        return (folder / ".git" / "index").stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def check_until(deadline: float) -> Check:
    def check() -> None:
        if time.monotonic() >= deadline:
            raise OutOfTime

    return check


def _described(folder: Path, check: Check) -> GitFolder:
    plain = GitFolder(str(folder), folder.name)
    try:
        repository = find_repository(folder)
        check()
        return _measured(plain, repository, folder, check) if repository else plain
    except OutOfTime:
        return plain
    except Unavailable as error:
        return replace(plain, problem=error.message)


def _measured(plain: GitFolder, repository: Repository, folder: Path, check: Check) -> GitFolder:
    files = size = 0
    languages: Counter[str] = Counter()
    for path, (_, count, *_) in read_index(repository, folder, check).entries.items():
        kind = known_type(path)
        if kind is None or NOT_COUNTED & {*PurePosixPath(path).parts}:
            continue
        files += 1
        size += count
        if kind.grammar and not kind.prose and not kinds(path) & ASIDE:
            languages[kind.name] += count
    top = languages.most_common(1)
    return replace(plain, files=files, size=size, language=top[0][0] if top else "")
