"""Counts the files of a git work tree that git does not track. They are listed, never read.

An ignored or excluded folder, such as `node_modules/`, is not entered: it counts as one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from apps.core.values.surrogates import storable
from apps.index.root_directory import RootDirectory
from apps.index.types import Check
from apps.ingest.discovery.eligibility import Rules
from apps.ingest.discovery.walk import IGNORED, walk
from apps.ingest.types import MAX_LEFT_OUT, LeftOut

UNTRACKED = "Not tracked by git"
GIT_DIRECTORIES = (".git", ".git/")
MAX_NAMED = 200


def count_left_out(
    directory: RootDirectory, tracked: Sequence[str], rules: Rules, check: Check
) -> LeftOut:
    """Return how many files and folders git does not track, and the names of the first.

    tracked: paths relative to the root
    """
    submodules = {f"{path.rstrip('/')}/" for path in tracked}
    known = {"", *GIT_DIRECTORIES, *tracked, *submodules}
    with_tracked = _folders_of(tracked)
    listed = walk(directory, rules, check, closed=submodules)
    # An excluded folder with tracked files is among the skipped files already.
    others = (
        file
        for file in listed
        if file.path not in known and (file.reason == IGNORED or file.path not in with_tracked)
    )
    counts: Counter[bool] = Counter()
    names: list[tuple[str, str]] = []
    for file in islice(others, MAX_LEFT_OUT):
        ignored = file.reason == IGNORED or _is_excluded(file.path, rules)
        counts[ignored] += 1
        if len(names) < MAX_NAMED:
            names.append((storable(file.path), storable(file.reason) if ignored else UNTRACKED))
    return LeftOut(counts[False], counts[True], tuple(sorted(names)))


def _is_excluded(path: str, rules: Rules) -> bool:
    bare = path.rstrip("/")
    return rules.excludes(bare, bare.rpartition("/")[2])


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Return the folders above the paths. Each ends with a slash."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rstrip("/").rpartition("/")[0]
        while folder and f"{folder}/" not in folders:
            folders.add(f"{folder}/")
            folder = folder.rpartition("/")[0]
    return folders
