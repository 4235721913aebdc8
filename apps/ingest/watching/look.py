"""Compares a folder with what is published, by size and modification time."""

import errno
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from pathlib import Path

from apps.core.values.surrogates import is_storable
from apps.index import queries
from apps.index.models import Root
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.eligibility import EXCLUDED
from apps.ingest.watching.files import UNKNOWN, published_states
from apps.ingest.watching.states import MAX_TOLD
from apps.ingest.watching.watched import NOWHERE, Watched


def problem_of(root: Root) -> tuple[str, tuple[int, int]]:
    """Return why a folder cannot be looked at, a sentence, "" if it can; and its device and inode,
    or NOWHERE."""
    try:
        with RootDirectory(Path(root.path)) as directory:
            directory.check_listable()
            return "", directory.identity()
    except (FileNotFoundError, NotADirectoryError):
        return "Its folder is gone.", NOWHERE
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return "", NOWHERE  # too many files are open: that says nothing about the folder
        return f"Its folder cannot be read: {error.strerror or error}.", NOWHERE


def changed(watched: Watched, goes_on: Callable[[], bool]) -> set[str]:
    """Return the paths of files that differ, and the folders in which files came or went. Raises
    OSError if the root cannot be opened.

    goes_on: called for each file; nothing is returned after it was False
    """
    found: set[str] = set()
    files = watched.files
    with RootDirectory(Path(watched.root.path)) as directory:
        for path, state in files.published(watched.root).items():
            if not goes_on():
                return set()
            if state != UNKNOWN and files.differs(directory, path, state):
                found.add(path)
        return found | _changed_folders(watched, directory, sorted(watched.folders.changed_at))


def changed_of(watched: Watched, paths: Set[str]) -> Set[str]:
    """Return the paths without those of files that are as they are published. Folders stay."""
    if len(paths) > MAX_TOLD:
        return paths
    rows = queries.generation_files(watched.root).filter(path__in=paths).order_by()
    found = dict(published_states(rows))
    try:
        with RootDirectory(Path(watched.root.path)) as directory:
            return {
                path
                for path in paths
                if path.endswith("/") or watched.files.differs(directory, path, found.get(path))
            }
    except OSError:
        return paths


def fresh(watched: Watched) -> set[str]:
    """Return the folders that have changed before the kernel watched them. Raises OSError if the
    root cannot be opened."""
    folders, watched.folders.fresh = sorted(watched.folders.fresh), set()
    if not folders:
        return set()
    with RootDirectory(Path(watched.root.path)) as directory:
        return _changed_folders(watched, directory, folders)


def _changed_folders(
    watched: Watched, directory: RootDirectory, folders: Sequence[str]
) -> set[str]:
    found: set[str] = set()
    new: set[str] = set()
    known = watched.folders.changed_at
    for folder in folders:
        try:
            now = directory.stat(folder.rstrip("/") or ".").st_mtime_ns
        except OSError:
            known.pop(folder, None)
            found.add(folder)
            continue
        if known.get(folder) != now:
            known[folder] = now
            found.add(folder)
            # A folder that cannot be listed hides no other change.
            with suppress(OSError):
                new.update(
                    f"{folder}{entry.name}/"
                    for entry in directory.entries(folder)
                    if entry.is_folder and entry.name not in EXCLUDED and is_storable(entry.name)
                )
    watched.folders.take(watched.root, new - known.keys())
    return found
