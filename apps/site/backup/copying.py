"""Makes a consistent copy of the database, index, texts and vectors while the server runs.

Publishing, merging and deleting wait meanwhile (`apps.index.freeze`). The stores are copied
before the database: a run writes rows before their chunks, so the copied database has a row
for each copied chunk. The first sweep after a restore deletes the unpublished ones.
"""

import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from django.conf import settings

from apps.core.config import config
from apps.core.data.sqlite_files import open_file
from apps.core.errors import Conflict, Unavailable
from apps.core.system import posix
from apps.index import freeze, queries
from apps.index.mapped import lists, part
from apps.index.models import Root
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.store import get_store
from apps.site.backup.manifest import DATABASE, SINGLE, RootCounts, is_member

logger = logging.getLogger("codeinfo.site")

# Attempts to copy Chroma's files, which should not change meanwhile.
TRIES = 5
PIECE = 1 << 20
Report = Callable[[str], None]
Stamps = dict[str, tuple[int, int]]


def refuse_other_stores() -> None:
    """Raise Conflict NOT_EMBEDDED if the database or Chroma is a server."""
    if not str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3"):
        raise Conflict(
            "The database is not SQLite: use its own backup (pg_dump, mongodump), with codeinfo "
            "stopped, together with that of Chroma, and index/ and texts/ in the data folder.",
            code="NOT_EMBEDDED",
        )
    if config().chroma_url:
        raise Conflict(
            "CHROMA_URL is set: back up the Chroma server's own folder, with codeinfo and that "
            "server stopped, together with the data folder.",
            code="NOT_EMBEDDED",
        )


def size() -> int:
    """Return the approximate size of a copy, in bytes."""
    folder = config().data_dir.absolute()
    files = [database_path(), *get_texts().files()]
    files += [*lists.folder().glob("*"), *(folder / "chroma").rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file())


def database_path() -> Path:
    return Path(str(settings.DATABASES["default"]["NAME"]))


def copy_all(target: Path, check: Check, report: Report) -> list[RootCounts]:
    """Copy everything to `target`, an empty folder. Return the counts of each root."""
    report("waiting for changes of the index to finish")
    with freeze.index.frozen(check):
        report("copying the index; publishing and removing wait")
        _copy_parts(target / "index", check)
        report("copying the texts")
        (target / "texts").mkdir()
        get_texts().copy(target / "texts", check)
        report("copying the vectors; calls of Chroma wait")
        vectors = {root.id: _promised(root) for root in Root.objects.all()}
        _copy_chroma(target / "chroma", check)
        report("copying the database")
        copy_database(database_path(), target / DATABASE)
        counts = [_counts(root, vectors.get(root.id, 0)) for root in Root.objects.order_by("path")]
    for name in SINGLE:
        if (file := config().data_dir.absolute() / name).is_file():
            copy_file(file, target / name)
    return counts


def _promised(root: Root) -> int:
    """Return the number of vectors that a restore must find. 0 if the root is damaged, or waits to
    be embedded with another model: then it is copied as it is."""
    if root.damage or root.model != queries.locked_model():
        return 0
    try:
        return get_store().count(root.store)
    except Unavailable as error:
        if error.code == BROKEN:
            raise
        facts = {"root": root.path, "reason": error.message}
        logger.warning("vectors of a folder are backed up as they are", extra={"context": facts})
        return 0


def _counts(root: Root, vectors: int) -> RootCounts:
    return RootCounts(
        path=root.path,
        name=root.name,
        generation=root.generation,
        files=root.files,
        chunks=root.chunks,
        embedded=root.embedded,
        vectors=vectors,
        indexed=lists.rows_of(root),
    )


def _copy_parts(target: Path, check: Check) -> None:
    """Copy the files that roots list. One that is lost is made again after a restore."""
    target.mkdir()
    for name in {entry["name"] for root in Root.objects.all() for entry in root.parts}:
        check()
        source = part.path_of(lists.folder(), name)
        with suppress(FileNotFoundError):
            copy_file(source, target / source.name)


def _copy_chroma(target: Path, check: Check) -> None:
    """Copy Chroma's database and its index folders. Calls of Chroma wait for the copy, but not for
    the check of the copy."""
    _copy_paused(target, check)
    check_copy(target / "chroma.sqlite3")


def _copy_paused(target: Path, check: Check) -> None:
    with get_store().paused() as folder:
        assert folder is not None  # refuse_other_stores
        for _ in range(TRIES):
            check()
            before = _stamps(folder)
            target.mkdir()
            copy_unchecked(folder / "chroma.sqlite3", target / "chroma.sqlite3")
            for path in _index_files(folder):
                copied = target / path.relative_to(folder)
                copied.parent.mkdir(exist_ok=True)
                copy_file(path, copied)
            if _stamps(folder) == before:
                return
            shutil.rmtree(target)
    raise Unavailable("Chroma's files change all the time: try again.")


def _stamps(folder: Path) -> Stamps:
    return {
        str(path): (status.st_size, status.st_mtime_ns)
        for path in _index_files(folder)
        if (status := path.stat())
    }


def _index_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob("*/*")):
        if is_member(f"chroma/{path.relative_to(folder)}"):
            yield path


def copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite database with its write-ahead log, by SQLite's backup API. Raises Unavailable
    if it cannot be read, or is broken."""
    copy_unchecked(source, target)
    check_copy(target)


def copy_unchecked(source: Path, target: Path) -> None:
    """As `copy_database`, without checking the copy."""
    try:
        with closing(open_file(source, "rw")) as database, closing(sqlite3.connect(target)) as copy:
            database.backup(copy)
    except sqlite3.Error as error:
        raise Unavailable(f"{source} cannot be copied: {error}", retryable=False) from error


def check_copy(copied: Path) -> None:
    """Raise Unavailable if a copied database is broken."""
    try:
        with closing(open_file(copied, "rw")) as copy:
            (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise Unavailable(f"{copied.name} cannot be copied: {error}", retryable=False) from error
    if verdict != "ok":
        raise Unavailable(f"{copied.name} is damaged: {verdict}", retryable=False)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file, never through a link. Raises OSError."""
    descriptor = posix.open_nofollow(source, os.O_RDONLY | posix.O_NONBLOCK)
    with open(descriptor, "rb") as opened, target.open("xb") as copy:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{source} is not a regular file")
        shutil.copyfileobj(opened, copy, PIECE)
