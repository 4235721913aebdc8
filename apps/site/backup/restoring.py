"""Restores a backup to a new or empty data folder, and verifies it.

The files are written to `restore.unfinished` first. Child processes with that data folder migrate
the database and verify the index; then the files are moved. After an interrupted restore, a server
does not start, and the next restore starts over.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.config import BASE_DIR
from apps.core.data import folder_lock
from apps.core.errors import Conflict, InvalidInput, Unavailable, reason_of
from apps.core.system import posix, programs
from apps.index import freeze
from apps.index.types import Check
from apps.site.backup import archive
from apps.site.backup.copying import Report, refuse_other_database
from apps.site.backup.manifest import DATABASE, SECRET, SINGLE

UNFINISHED = "restore.unfinished"
# Moved in this order. The database is last: without it, the other files are not used.
PARTS = ("index", "texts", *SINGLE, f"{DATABASE}-wal", DATABASE)
# Files that manage.py and the codeinfo command create at their start, and locks.
HARMLESS = frozenset({SECRET, "logs", "restore.lock", folder_lock.NAME, *freeze.NAMES})
HARMLESS |= {"server.json", "server.lock", "server.start", "server.users"}
LOCK = "restore.lock"
LOCKS = (folder_lock.NAME, "server.lock", LOCK)
SECONDS, MOST_BYTES = 6 * 3600.0, 256_000_000


def restore(file: Path, folder: Path, *, check: Check, report: Report) -> dict[str, Any]:
    """Restore `file` to `folder`, and return the result of `verify_index`.

    Raises InvalidInput (BACKUP_BROKEN, BACKUP_NEWER, BACKUP_OLDER, or no such file), Conflict
    (NOT_EMBEDDED, IN_USE, HOLDS_DATA) and Unavailable if the folder cannot be written. After an
    error, nothing has changed.
    """
    created = settings.CREATED if folder == settings.DATA_DIR else ()
    if not folder.exists():
        created = (folder,)
    with ExitStack() as undo:
        undo.callback(_remove_created, created)
        refuse_other_database()
        if not file.is_file():
            raise InvalidInput(f"There is no file {file}.")
        try:
            with archive.reading(file) as opened:
                opened.manifest.refuse_other()
                _refuse_folder(folder)
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _locked(folder):
                    done = _restored(opened, folder, check, report)
        except OSError as error:
            reason = reason_of(error)
            raise Unavailable(f"The backup could not be restored: {reason}") from error
        undo.pop_all()
        return done


def _remove_created(paths: Iterable[Path]) -> None:
    """Remove files, and folders that are empty."""
    for path in paths:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


def _restored(
    opened: archive.Archive, folder: Path, check: Check, report: Report
) -> dict[str, Any]:
    manifest = opened.manifest
    archive.refuse_full_disk(folder, "a restore needs", manifest.size, len(manifest.members))
    _remove_unfinished(folder)
    staging = folder / UNFINISHED
    staging.mkdir(mode=0o700)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, staging, ignore_errors=True)
        report(f"writing {manifest.size / 1e6:,.1f} MB")
        opened.extract(staging, check)
        report("bringing the database up to date")
        _manage(staging, "migrate", "--verbosity", "0")
        report("comparing rows, parts and texts")
        outcome = json.loads(_manage(staging, "verify_index", "--json").stdout)
        undo.pop_all()  # from here on, the staging folder marks an interrupted move
    if SECRET not in manifest.members:
        (staging / SECRET).unlink(missing_ok=True)  # created by the child processes
    for part in PARTS:
        if (staging / part).exists():
            if part != SECRET:
                _remove(folder / part)  # created by commands: empty, except for locks
            (staging / part).replace(folder / part)
    shutil.rmtree(staging)
    return {"folder": str(folder), "created": manifest.created, "found": outcome}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock `folder` against other restores, and check again that it has no data."""
    path = folder / LOCK
    with posix.open_private(path) as file:
        if not posix.lock(file, wait=False) or not os.path.samestat(
            os.fstat(file.fileno()), path.stat()
        ):
            raise _in_use(folder)
        try:
            _refuse_data(folder)
            yield
        finally:
            path.unlink()


def is_unfinished(folder: Path) -> bool:
    """Whether a restore to this folder was interrupted."""
    return (folder / UNFINISHED).exists()


def _remove_unfinished(folder: Path) -> None:
    """Remove the files of an interrupted restore. The folder was empty before it."""
    if not is_unfinished(folder):
        return
    for part in PARTS:
        if part != SECRET:
            _remove(folder / part)
    _remove(folder / UNFINISHED)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder.")
    for lock in LOCKS:
        if _is_locked(folder / lock):
            raise _in_use(folder)
    _refuse_data(folder)


def _in_use(folder: Path) -> Conflict:
    return Conflict(
        f"A codeinfo runs on {folder}, or another restore: stop it first.", code="IN_USE"
    )


def _refuse_data(folder: Path) -> None:
    if is_unfinished(folder):
        return
    if existing := sorted(_existing(folder)):
        raise Conflict(
            f"{folder} holds data already ({', '.join(existing[:3])}): restore to a new folder.",
            code="HOLDS_DATA",
        )


def _existing(folder: Path) -> Sequence[str]:
    if not folder.exists():
        return []
    names = [name for name in os.listdir(folder) if name not in HARMLESS]
    # Commands that open the stores create their folders.
    return [name for name in names if not (name in PARTS and _is_bare(folder / name))]


def _is_bare(path: Path) -> bool:
    if path.is_dir():
        return all(name in HARMLESS for name in os.listdir(path))
    return path.stat().st_size == 0


def _is_locked(path: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError), path.open("r+b") as file:
        return not posix.lock(file, shared=True, wait=False)
    return False


def _manage(folder: Path, *command: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command of manage.py with `folder` as its data folder. Raises Unavailable."""
    env = {
        **programs.import_path(),
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(folder.absolute()),
        "LOG_LEVEL": "error",
        # Blank values take precedence over a .env file.
        **dict.fromkeys(("DATABASE_URL", "MONGO_URI", "CHROMA_URL", "CELERY_BROKER_URL"), ""),
        **dict.fromkeys(("LOG_FILE_PATH", "REDIS_URL", "CODEINFO_SECRET_KEY"), ""),
    }
    script = [sys.executable, "-P", str(BASE_DIR / "manage.py"), *command]
    done = programs.run(script, env=env, data=b"", seconds=SECONDS, most_bytes=MOST_BYTES)
    # verify_index exits with 1 if there are differences.
    if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"{command[0]} failed on the restored data: {''.join(last)}")
    return done
