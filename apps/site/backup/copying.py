"""Makes a consistent copy of the database, the parts of the index and the texts while the server
runs. Chroma is not copied: it follows the index.

Publishing, merging and deleting wait meanwhile, in all processes (`apps.index.freeze`).
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.config import config
from apps.core.data.sqlite_files import open_file
from apps.core.errors import Conflict, Unavailable
from apps.core.system import disk, posix
from apps.index import freeze
from apps.index.mapped import lists, part
from apps.index.models import Root
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.site.backup.manifest import DATABASE, SINGLE

PIECE = 1 << 20
FACTS = ("path", "name", "generation", "revision", "files", "chunks")
Report = Callable[[str], None]


def refuse_other_database() -> None:
    """Raise Conflict NOT_EMBEDDED if the database is a server."""
    if disk.database_file() is None:
        raise Conflict(
            "The database is not SQLite: use its own backup (pg_dump, mongodump), with codeinfo "
            "stopped, together with index/ and texts/ in the data folder.",
            code="NOT_EMBEDDED",
        )


def size() -> tuple[int, int]:
    """Return the approximate size of a copy: in bytes, and in files."""
    files = [database_path(), *get_texts().files(), *lists.folder().glob("*")]
    sizes = [path.stat().st_size for path in files if path.is_file()]
    return sum(sizes), len(sizes)


def database_path() -> Path:
    return Path(str(settings.DATABASES["default"]["NAME"]))


def copy_all(target: Path, check: Check, report: Report) -> list[dict[str, Any]]:
    """Copy everything to `target`, a folder that does not exist. Return what the row of each root
    says. Raises Unavailable if the database cannot be copied."""
    report("waiting for changes of the index to finish")
    with freeze.frozen(check):
        roots = list(Root.objects.order_by("path").values(*FACTS))
        report("copying the index; publishing and removing wait")
        (target / "index").mkdir(parents=True)
        _copy_parts(target / "index", check)
        report("copying the texts")
        (target / "texts").mkdir()
        get_texts().copy(target / "texts", check)
        report("copying the database")
        copy_database(database_path(), target / DATABASE)
    for name in SINGLE:
        if (file := config().data_dir.absolute() / name).is_file():
            copy_file(file, target / name)
    return roots


def _copy_parts(target: Path, check: Check) -> None:
    """Copy the files that roots list. One that is lost is made again after a restore."""
    published = Root.objects.values_list("parts", flat=True)
    for name in {entry["name"] for parts in published for entry in parts}:
        check()
        source = part.path_of(lists.folder(), name)
        with suppress(FileNotFoundError):
            copy_file(source, target / source.name, immutable=True)


def copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite database with its write-ahead log, by SQLite's backup API. Raises Unavailable
    if it cannot be read, or is broken."""
    try:
        with closing(open_file(source, "rw")) as database, closing(sqlite3.connect(target)) as copy:
            database.backup(copy)
            (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise Unavailable(f"{source} cannot be copied: {error}", retryable=False) from error
    if verdict != "ok":
        raise Unavailable(f"{source} is damaged: {verdict}", retryable=False)


def copy_file(source: Path, target: Path, *, immutable: bool = False) -> None:
    """Copy a regular file, never through a link. Raises OSError.

    immutable: the copy may be another name of the same file, where the disk allows it
    """
    descriptor = posix.open_nofollow(source, os.O_RDONLY | posix.O_NONBLOCK)
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{source} is not a regular file")
        if immutable:
            with suppress(OSError):
                os.link(source, target)
                return
        with target.open("xb") as copy:
            shutil.copyfileobj(opened, copy, PIECE)
