"""Detects broken files of an embedded Chroma, and sets them aside.

Broken files are moved to `chroma.broken-<date>` beside Chroma's folder, or inside it if it is a
mount point. The newest two of these folders stay, for inspection. An interrupted move is finished
before the folder is opened again. Files are moved only while the folder is locked and no child
process has it open.
"""

import errno
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from apps.core.data.sqlite_files import is_broken, open_file
from apps.index.changes import check_due
from apps.index.vectors.chroma import is_index_folder, unavailable

logger = logging.getLogger("codeinfo.ingest")

DATABASE = "chroma.sqlite3"
BROKEN = ".broken-"
MAX_KEPT = 2
# A folder in Chroma's folder that has the files during a move, and in it the list of their names.
STAGING, LIST = "setting-aside", "moved.txt"
LONGEST_VERDICT = 150
LIST_SIZE_BYTES = 4
# Header of an SQLite database file, in bytes (sqlite.org/fileformat.html).
HEADER_SIZE = 100
# With less free space than this, a failure does not count as broken files.
MIN_FREE_BYTES = 64 << 20

# Files of links that were found whole → their state then.
_whole: dict[Path, tuple[int, ...]] = {}


def problem_of(folder: Path) -> str:
    """Return why Chroma cannot use this store; "" if no reason is found.

    Runs SQLite's integrity_check on the whole database, during which Chroma cannot write.
    """
    return problem_without_database(folder) or _verdict(folder, "ro")


def problem_beside(folder: Path) -> str | None:
    """As `problem_of`, without locking the database, so that Chroma can write. Return None if the
    result is unknown because the database was written meanwhile."""
    before = _state(folder)
    # A write during the check can make it report a fault, but cannot hide one.
    problem = problem_without_database(folder) or _verdict(folder, "ro&immutable=1")
    return problem if not problem or (before and before == _state(folder)) else None


def _verdict(folder: Path, mode: str) -> str:
    try:
        with closing(open_file(folder / DATABASE, mode)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")
            # quick_check does not notice an index without some rows; these cannot be deleted.
            (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        return f"{DATABASE}: {error}" if is_broken(error) else ""
    except UnicodeDecodeError:
        # SQLite's message quotes a name of the schema that is not UTF-8.
        return f"{DATABASE}: its schema is malformed"
    return "" if verdict == "ok" else f"{DATABASE}: {' '.join(verdict.split())[:LONGEST_VERDICT]}"


def _state(folder: Path) -> tuple[Any, ...] | None:
    """Return a value that changes with the database; None if a transaction is in progress or was
    interrupted."""
    database = folder / DATABASE
    logs = [Path(f"{database}{ending}") for ending in ("-journal", "-wal")]
    if any(log.exists() and log.stat().st_size for log in logs):
        return None
    if not database.exists():
        return ("missing",)
    status = database.stat()
    with database.open("rb") as file:
        header = file.read(HEADER_SIZE)  # has a counter of transactions
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, header


def problem_without_database(folder: Path) -> str:
    """Return the problem if there are index files but no database; else ""."""
    database = folder / DATABASE
    if (database.exists() and database.stat().st_size) or not folder.is_dir():
        return ""
    has_indexes = any(is_index_folder(entry) for entry in folder.iterdir())
    return f"{DATABASE} is missing, and index files are there" if has_indexes else ""


def set_torn_indexes_aside(folder: Path) -> None:
    """Set aside each index with a list of links that is longer than its file.

    Called before Chroma opens the folder: it would allocate memory and disk for the wrong size. The
    collection of the index fails from then on, and is rebuilt. Files that were whole and have not
    changed are not read again.
    """
    if not folder.is_dir():
        return
    for index in filter(is_index_folder, sorted(folder.iterdir())):
        links = index / "link_lists.bin"
        state = _state_of(links)
        if state is None or _whole.get(links) == state:
            continue
        if problem := problem_of_links(links):
            facts = {"index": index.name, "reason": problem}
            logger.error("an index of vectors is torn", extra={"context": facts})
            _move(folder, [index])
            check_due.set()
        else:
            _whole[links] = state


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes with a file; None if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None  # Chroma reports files that are missing or not readable
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def problem_of_links(path: Path) -> str:
    """Return why a links file of hnswlib is torn; "" if it is not, or cannot be read.

    Format (hnswlib's `saveIndex`): for each vector the size in bytes of its lists of links, u32
    little-endian, followed by the lists, of u32 too. Most vectors have none.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return ""  # Chroma reports files that are missing or not readable
    words = np.frombuffer(content, "<u4", len(content) // LIST_SIZE_BYTES)
    filled = np.flatnonzero(words)
    at = rows = 0
    while (place := int(np.searchsorted(filled, at))) < len(filled):
        start = int(filled[place])
        rows += start - at + 1
        size, rest = divmod(int(words[start]), LIST_SIZE_BYTES)
        # A size in between is of no list: Chroma would read all that follows wrongly.
        at = len(words) + 1 if rest else start + 1 + size
    return f"{path.name} breaks off in row {rows:,}" if at > len(words) else ""


def check_readable(folder: Path, names: Sequence[str]) -> None:
    """Raise Unavailable if the collections may fail for another reason than the content of their
    index files: a file cannot be opened, or the disk is full."""
    check_space(folder)
    for index in _index_folders(folder, names):
        try:
            for entry in index.iterdir():
                with entry.open("rb") as file:
                    file.read(1)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise unavailable(f"Chroma's files cannot be read: {error}") from error


def check_space(folder: Path) -> None:
    """Raise Unavailable if the disk is full, which may be the reason of a failure."""
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise unavailable(f"Chroma failed, and the disk of {folder} is full")


def set_collections_aside(folder: Path, names: Sequence[str]) -> Path | None:
    """Move away the index files of some collections. Return the target folder; None if there were
    no files. Raises Unavailable."""
    indexes = [index for index in _index_folders(folder, names) if is_index_folder(index)]
    return _move(folder, indexes) if indexes else None


def set_store_aside(folder: Path) -> Path | None:
    """Move away all files of the store. Return the target folder; None if there were no files.
    Raises Unavailable."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [entry for entry in folder.iterdir() if not _is_not_of_store(folder, entry)]
    return _move(folder, entries) if entries else finish(folder)


def _is_not_of_store(folder: Path, entry: Path) -> bool:
    """Whether an entry is a lock, or was set aside."""
    set_aside = entry.name.startswith(f"{folder.name}{BROKEN}")
    return set_aside or entry.name == STAGING or entry.suffix == ".lock"


def finish(folder: Path) -> Path | None:
    """Finish an interrupted move, if there is one. Return its target folder. Raises Unavailable.

    Called before Chroma opens the folder, so that it does not open half a store.
    """
    try:
        return _finish(folder)
    except OSError as error:
        raise unavailable(f"Chroma's broken files cannot be set aside: {error}") from error


def _index_folders(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the index folders of some collections. Raises Unavailable if the database cannot be
    read."""
    statement = (
        "SELECT segments.id FROM segments JOIN collections ON collections.id = collection "
        "WHERE scope = 'VECTOR' AND (name = ? OR name GLOB ? || '.[0-9]*')"
    )
    try:
        with closing(open_file(folder / DATABASE, "ro")) as database:
            found = [row for name in names for row in database.execute(statement, (name, name))]
            return [folder / Path(row[0]).name for row in found]
    except sqlite3.Error as error:
        raise unavailable(f"Chroma's database cannot be read: {error}") from error


def _move(folder: Path, entries: Iterable[Path]) -> Path | None:
    """Move entries away. If that fails, move them back and raise Unavailable."""
    staging = folder / STAGING
    try:
        _finish(folder)
        staging.mkdir(mode=0o700)
        names = "".join(f"{entry.name}\n" for entry in entries)
        (staging / f"{LIST}.new").write_text(names)
        (staging / f"{LIST}.new").replace(staging / LIST)
        target = _finish(folder)
    except OSError as error:
        _put_back(folder)
        raise unavailable(f"Chroma's broken files cannot be set aside: {error}") from error
    return target


def _finish(folder: Path) -> Path | None:
    """As `finish`. Raises OSError."""
    staging = folder / STAGING
    if not staging.is_dir():
        return None
    for name in _read_list(staging):
        if (folder / name).exists() and not (staging / name).exists():
            os.rename(folder / name, staging / name)
    for name in (f"{LIST}.new", LIST):
        (staging / name).unlink(missing_ok=True)
    if not any(staging.iterdir()):
        staging.rmdir()
        return None
    target = _rename(staging, folder)
    _delete_older(folder)
    logger.warning("broken vectors set aside", extra={"context": {"folder": str(target)}})
    return target


def _read_list(staging: Path) -> list[str]:
    """Return the names of the files to move. The list is written before the first is moved."""
    try:
        return [Path(name).name for name in (staging / LIST).read_text().splitlines() if name]
    except FileNotFoundError:
        return []


def _put_back(folder: Path) -> None:
    """Move files back. `finish` moves away what cannot be moved back."""
    staging = folder / STAGING
    with suppress(OSError):
        for name in _read_list(staging):
            if (staging / name).exists() and not (folder / name).exists():
                os.rename(staging / name, folder / name)
        for name in (f"{LIST}.new", LIST):
            (staging / name).unlink(missing_ok=True)
        staging.rmdir()


def _rename(staging: Path, folder: Path) -> Path:
    """Rename the staging folder to its final name, in one step: beside `folder`, or inside if the
    parent is another file system or not writable."""
    name = f"{folder.name}{BROKEN}{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        target = _unused_name(folder.parent, name)
        os.rename(staging, target)
    except OSError:
        target = _unused_name(folder, name)
        os.rename(staging, target)
    return target


def _unused_name(place: Path, name: str) -> Path:
    """Return a path that does not exist yet."""
    target, number = place / name, 1
    while target.exists():
        number += 1
        target = place / f"{name}-{number}"
    return target


def _delete_older(folder: Path) -> None:
    """Delete all folders with files set aside, except the newest MAX_KEPT."""
    folders = [
        *folder.parent.glob(f"{folder.name}{BROKEN}*"),
        *folder.glob(f"{folder.name}{BROKEN}*"),
    ]
    newest_first = sorted(folders, key=lambda each: os.stat(each).st_ctime_ns, reverse=True)
    for old in newest_first[MAX_KEPT:]:
        shutil.rmtree(old)
        logger.warning("older broken vectors deleted", extra={"context": {"folder": str(old)}})
