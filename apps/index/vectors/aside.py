"""An embedded store, or a collection of it, that cannot be used is moved out of the way, and kept.

It goes to `chroma.broken-<date>` beside Chroma's folder, for whoever wants to look into it; in that
folder where it is a mount of its own. The newest two are kept. What is interrupted is finished
before the folder is opened again. Only done while the folder is locked and no child has it open.
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

from apps.core.sqlite_files import is_broken, open_file
from apps.index.vectors.chroma import failed, is_index_folder, unavailable

logger = logging.getLogger("codeinfo.ingest")

DATABASE = "chroma.sqlite3"
BROKEN = ".broken-"
KEPT = 2
# Where things are while they are moved, in Chroma's folder, and which they are.
STAGING, LIST = "setting-aside", "moved.txt"
LONGEST_VERDICT = 150
LIST_SIZE_BYTES = 4
# Of an SQLite database.
HEADER_SIZE = 100
# With less space than this, what fails is not taken for broken.
LEAST_FREE = 64 << 20


def problem_of(folder: Path) -> str:
    """Why no Chroma can use this store, as SQLite itself or the files say; "" where it can, or
    where that is not known. Reads all of its database, which must not be written meanwhile: Chroma
    would wait for it."""
    return problem_without_database(folder) or _verdict(folder, "ro")


def problem_beside(folder: Path) -> str | None:
    """The same while Chroma is at work there, which waits for nothing: SQLite takes no lock. None
    where that cannot be told, since the database was written meanwhile."""
    before = _state(folder)
    # What is written under its eyes may look malformed; it cannot look whole and be it not.
    problem = problem_without_database(folder) or _verdict(folder, "ro&immutable=1")
    return problem if not problem or (before and before == _state(folder)) else None


def _verdict(folder: Path, mode: str) -> str:
    try:
        with closing(open_file(folder / DATABASE, mode)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")
            # The quick check does not see an index that lacks rows, by which nothing is deleted.
            (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        return f"{DATABASE}: {error}" if is_broken(error) else ""
    except UnicodeDecodeError:
        # SQLite's own message quotes a name of the schema, which is no text.
        return f"{DATABASE}: its schema is malformed"
    return "" if verdict == "ok" else f"{DATABASE}: {' '.join(verdict.split())[:LONGEST_VERDICT]}"


def _state(folder: Path) -> tuple[Any, ...] | None:
    """Changes whenever the database does; None while a transaction is in it, or was cut off."""
    database = folder / DATABASE
    logs = [Path(f"{database}{ending}") for ending in ("-journal", "-wal")]
    if any(log.exists() and log.stat().st_size for log in logs):
        return None
    if not database.exists():
        return ("missing",)
    found = database.stat()
    with database.open("rb") as file:
        header = file.read(HEADER_SIZE)  # it counts the transactions
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, header


def problem_without_database(folder: Path) -> str:
    """The problem of index files without the database that says what they are; else ""."""
    database = folder / DATABASE
    if (database.exists() and database.stat().st_size) or not folder.is_dir():
        return ""
    lonely = any(is_index_folder(entry) for entry in folder.iterdir())
    return f"{DATABASE} is missing, and index files are there" if lonely else ""


def set_torn_indexes_aside(folder: Path) -> None:
    """Move away each index in which a list of links has more bytes than its file; its collection
    fails from then on, and is made again. Called before Chroma opens the folder: it would believe
    that size, and take so much memory and disk."""
    if not folder.is_dir():
        return
    for index in filter(is_index_folder, sorted(folder.iterdir())):
        if problem := problem_of_links(index / "link_lists.bin"):
            facts = {"index": index.name, "reason": problem}
            logger.error("an index of vectors is torn", extra={"context": facts})
            _move(folder, [index])
            failed.set()


def problem_of_links(path: Path) -> str:
    """Why a file of hnswlib's links is torn; "" where it is not, or cannot be read.

    For each vector it holds the size in bytes of its lists of links (u32, little-endian), and then
    these (hnswlib's `saveIndex`): four wrong bytes are gigabytes.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return ""  # Chroma itself says what is missing or not readable
    at = rows = 0
    while at + LIST_SIZE_BYTES <= len(content):
        at += LIST_SIZE_BYTES + int.from_bytes(content[at : at + LIST_SIZE_BYTES], "little")
        rows += 1
    return f"{path.name} breaks off in row {rows:,}" if at > len(content) else ""


def check_readable(folder: Path, names: Sequence[str]) -> None:
    """Raises Unavailable where the index files of some collections may fail for another reason
    than their content: they cannot be opened, or the disk is full."""
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
    """Raises Unavailable where a full disk may be why something fails."""
    if shutil.disk_usage(folder).free < LEAST_FREE:
        raise unavailable(f"Chroma failed, and the disk of {folder} is full")


def set_collections_aside(folder: Path, names: Sequence[str]) -> Path | None:
    """Move the index files of some collections; where to, or None where there are none."""
    found = [index for index in _index_folders(folder, names) if is_index_folder(index)]
    return _move(folder, found) if found else None


def set_store_aside(folder: Path) -> Path | None:
    """Move everything but the locks; where to, or None where there is nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [entry for entry in folder.iterdir() if not _is_ours(folder, entry)]
    return _move(folder, found) if found else finish(folder)


def _is_ours(folder: Path, entry: Path) -> bool:
    """Whether this is no part of the store."""
    kept = entry.name.startswith(f"{folder.name}{BROKEN}")
    return kept or entry.name == STAGING or entry.suffix == ".lock"


def finish(folder: Path) -> Path | None:
    """Bring to its end a set-aside that was begun, and perhaps interrupted; where things are kept
    then. Called before Chroma opens the folder, so that what is left there is never taken for a
    store. Raises Unavailable."""
    try:
        return _finish(folder)
    except OSError as error:
        raise unavailable(f"Chroma's broken files cannot be set aside: {error}") from error


def _index_folders(folder: Path, names: Sequence[str]) -> list[Path]:
    """Those of some collections. Raises Unavailable where the database does not say."""
    marks = ",".join("?" * len(names))
    statement = (
        "SELECT segments.id FROM segments JOIN collections ON collections.id = collection "
        f"WHERE scope = 'VECTOR' AND name IN ({marks})"
    )
    try:
        with closing(open_file(folder / DATABASE, "ro")) as database:
            return [folder / Path(row[0]).name for row in database.execute(statement, names)]
    except sqlite3.Error as error:
        raise unavailable(f"Chroma's database cannot be read: {error}") from error


def _move(folder: Path, entries: Iterable[Path]) -> Path | None:
    """Raises Unavailable where they cannot be moved; then all is where it was."""
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
    for name in _listed(staging):
        if (folder / name).exists() and not (staging / name).exists():
            os.rename(folder / name, staging / name)
    for name in (f"{LIST}.new", LIST):
        (staging / name).unlink(missing_ok=True)
    if not any(staging.iterdir()):
        staging.rmdir()
        return None
    target = _named(staging, folder)
    _forget_older(folder)
    logger.warning("broken vectors set aside", extra={"context": {"folder": str(target)}})
    return target


def _listed(staging: Path) -> list[str]:
    """What is to be moved; all of it is written down before the first of it is moved."""
    try:
        return [Path(name).name for name in (staging / LIST).read_text().splitlines() if name]
    except FileNotFoundError:
        return []


def _put_back(folder: Path) -> None:
    """What cannot be put back is moved on by the next try."""
    staging = folder / STAGING
    with suppress(OSError):
        for name in _listed(staging):
            if (staging / name).exists() and not (folder / name).exists():
                os.rename(staging / name, folder / name)
        for name in (f"{LIST}.new", LIST):
            (staging / name).unlink(missing_ok=True)
        staging.rmdir()


def _named(staging: Path, folder: Path) -> Path:
    """Give what was moved its name: beside the folder or, where that is another file system or may
    not be written, in it. Everything is one rename: nothing is copied or half there."""
    name = f"{folder.name}{BROKEN}{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        target = _free(folder.parent, name)
        os.rename(staging, target)
    except OSError:
        target = _free(folder, name)
        os.rename(staging, target)
    return target


def _free(place: Path, name: str) -> Path:
    """A name that nothing has yet."""
    target, number = place / name, 1
    while target.exists():
        number += 1
        target = place / f"{name}-{number}"
    return target


def _forget_older(folder: Path) -> None:
    """Delete all but the newest."""
    found = [
        *folder.parent.glob(f"{folder.name}{BROKEN}*"),
        *folder.glob(f"{folder.name}{BROKEN}*"),
    ]
    newest_first = sorted(found, key=lambda each: os.stat(each).st_ctime_ns, reverse=True)
    for old in newest_first[KEPT:]:
        shutil.rmtree(old)
        logger.warning("older broken vectors deleted", extra={"context": {"folder": str(old)}})
