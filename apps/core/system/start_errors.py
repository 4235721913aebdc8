"""Messages for errors at start-up: the reason, and what to do.

`manage.py` and `serve` print them; `doctor` uses the same functions.
"""

import errno
import os
import sqlite3
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, OperationalError

from apps.core.system import disk, posix
from apps.core.system.command_lines import manage

# Secrets made by codeinfo have 64 characters.
SHORTEST_SECRET = 32
SHOWN = 3

_BACKUP = "restore it from a backup"
# The app index had this label then. The app that has it now has no migrations.
_UNRELEASED = ("ingest", "0001_initial")


def data_folder_problem(folder: Path) -> str:
    """Return why `folder` cannot be the data folder; "" if it can."""
    fix = "give this user the folder, or set CODEINFO_DATA_DIR to one that can be written."
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not os.path.isdir(nearest):
        return f"{nearest} is a file: move it away, or set CODEINFO_DATA_DIR to a folder."
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{folder} cannot be written ({_why_not(nearest)}): {fix}"
    return ""


def _why_not(folder: Path) -> str:
    try:
        read_only = posix.is_read_only(folder)
    except OSError as error:
        return error.strerror or str(error)
    return os.strerror(errno.EROFS if read_only else errno.EACCES)


def check_secret(path: Path, secret: str) -> str:
    """Return the secret. Raises ImproperlyConfigured if it is missing or cut off."""
    if len(secret.strip()) < SHORTEST_SECRET:
        raise ImproperlyConfigured(
            f"{path} is empty or cut off: {_BACKUP}, or delete it; a new one is made then, and "
            "everybody has to log in again."
        )
    return secret


def secret_problem(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Return why a secret cannot be read, and what to do."""
    if path.is_dir():
        return f"{path} is a folder: move it away, and restore the file from a backup."
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return f"{path} cannot be read ({reason}): give this user the file, or {_BACKUP}"


def is_unreleased(migrations: Collection[tuple[str, str]]) -> bool:
    """Whether a database with these migrations is from before the first release."""
    return _UNRELEASED in migrations


def check_migrations(applied: Collection[tuple[str, str]], known: set[tuple[str, str]]) -> None:
    """Raise ImproperlyConfigured if the database is from before the first release, or has
    migrations that this version lacks."""
    if is_unreleased(applied):
        after = "" if disk.database_file() else "; then set DATABASE_URL to an empty database"
        raise ImproperlyConfigured(
            "This data is from before the first release, and this codeinfo cannot read it: run "
            f"{manage('set_aside')}, which exports its conversations and moves it aside{after}."
        )
    apps = {app for app, _ in known}
    newer = sorted(f"{app}.{name}" for app, name in set(applied) - known if app in apps)
    if newer:
        more = f" and {len(newer) - SHOWN} more" if len(newer) > SHOWN else ""
        raise ImproperlyConfigured(
            f"The database was made by a newer codeinfo ({', '.join(newer[:SHOWN])}{more}): use "
            "that version, or restore a backup made before."
        )


def sentence(error: BaseException) -> str:
    """Return the message for an error at start-up; "" for an unexpected error."""
    if isinstance(error, ImproperlyConfigured):
        return _line(error)
    if disk.is_full(error):
        return disk.full_error(reason=_line(error)).message
    if isinstance(error, DatabaseError):
        file = disk.database_file()
        return _of_sqlite(error, file) if file else _of_server(error)
    if type(error).__module__.partition(".")[0] == "pymongo":
        return _of_server(OperationalError(str(error)))
    return ""


def _of_sqlite(error: DatabaseError, file: Path) -> str:
    code = (getattr(error.__cause__, "sqlite_errorcode", None) or 0) & 0xFF
    messages = {
        sqlite3.SQLITE_BUSY: f"Another process holds the database {file} ({error}): stop it.",
        sqlite3.SQLITE_LOCKED: f"Another process holds the database {file} ({error}): stop it.",
        sqlite3.SQLITE_READONLY: f"{file} cannot be written ({error}): give this user the file.",
        sqlite3.SQLITE_IOERR: f"{file} cannot be read or written ({error}): look at its disk.",
    }
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return (
            f"The database {file} is damaged ({error}): {_BACKUP}, or move it and the files beside "
            "it (-wal, -shm) away to begin with an empty one."
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return _not_opened(file, str(error))
    if code == sqlite3.SQLITE_ERROR and "no such table" in str(error):
        return f"The database {file} lacks tables ({error}): run {manage('migrate')}."
    return messages.get(code, "")


def _not_opened(file: Path, reason: str) -> str:
    if os.path.isdir(file):
        return f"{file} is a folder: move it away, or set DATABASE_URL."
    if not os.path.isdir(file.parent):
        return f"{file} cannot be opened: there is no folder {file.parent}; set DATABASE_URL."
    return (
        f"{file} cannot be opened ({reason}): give this user the file and its folder, or set "
        "DATABASE_URL."
    )


def _of_server(error: DatabaseError) -> str:
    if not isinstance(error, OperationalError):
        return ""
    database = settings.DATABASES["default"]
    host = str(database.get("HOST") or "")
    if "://" in host:  # MongoDB's is a whole URL
        host = urlsplit(host).netloc.rpartition("@")[2]
    elif host and "@" not in host:
        host = f"{host}:{database.get('PORT') or 'its port'}"
    else:
        host = ""
    where = f" at {host}" if host else ""
    return (
        f"The database{where} does not answer ({_line(error)}): start it, or correct DATABASE_URL."
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
