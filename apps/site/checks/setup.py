"""Checks of the set-up: versions, folders, ports, access."""

import json
import os
import platform
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from apps.core.config import config
from apps.core.data import folder_lock, lost_changes
from apps.core.errors import Unavailable
from apps.core.security import local_users, private_files
from apps.core.security.access import check_exposure
from apps.core.security.authentication import requires_credentials
from apps.core.system import disk, start_errors
from apps.core.system.command_lines import manage, verb
from apps.index import missing_runs
from apps.ingest.bases import bases
from apps.site import schema
from apps.site.checks.findings import Finding, Level, found
from apps.site.checks.parts import HIDDEN
from apps.site.checks.runner import Check, in_thread
from apps.site.server import port_problem, ports
from codeinfo_cli.client import Client
from codeinfo_cli.clients.client import this_machine
from codeinfo_cli.clients.exposed import exposed_clients
from codeinfo_cli.errors import CliError
from codeinfo_cli.server import Address, running

# Files listed in a finding.
SHOWN = 3
# The index of a large repository has about a gigabyte.
LITTLE_SPACE = 2 << 30


def checks(address: Address | None) -> list[Check]:
    """Return the checks, in the order in which problems should be fixed.

    address: the server of this data folder; None if none answers
    """
    table: list[tuple[str, str, Callable[[], Finding]]] = [
        ("versions", "Versions", _versions),
        ("access", "Access", _access),
        ("users", "Local users", _local_users),
        ("data", "Data folder", partial(_data_folder, address)),
        ("private", "Private files", _private_files),
        ("log", "Log file", _log_file),
        *(
            (f"base:{number}", "Ingest base", partial(_ingest_base, base))
            for number, base in enumerate(bases(), 1)
        ),
        *(
            (f"port:{name}", f"{name} {port}", partial(_port, name, port, address))
            for name, port in ports(config()).items()
        ),
        ("schema", "Database schema", _schema),
        ("behind", "Database and index", _behind),
        ("clients", "MCP clients", _clients),
    ]
    if config().redis_url:
        table.append(("redis", "Redis", _redis))
    return [Check(id, name, partial(in_thread, work)) for id, name, work in table]


def _found(level: Level, detail: str, fix: str = "") -> Finding:
    words = {"ok": "OK", "warn": "Look", "bad": "Broken", "off": "Off"}
    return found(level, words[level], detail, fix)


def own_server() -> tuple[Address, dict[str, Any]] | None:
    """Return the server of this data folder with the body of its `/health`; None if none answers.

    Its `server.json` tells where it is. On PORT, another installation may answer.
    """
    folder = config().data_dir.absolute()
    address = running(folder)
    if address is None:
        return None
    try:
        body = json.loads(Client(address, folder, timeout=10.0).get("/health"))
    except (CliError, ValueError):
        return None
    return (address, body) if isinstance(body, dict) and "mongoConnected" in body else None


def _versions() -> Finding:
    detail = (
        f"Python {platform.python_version()}, Django {django.get_version()}, "
        f"SQLite {sqlite3.sqlite_version}"
    )
    return _found("ok", detail)


def _access() -> Finding:
    settings = config()
    try:
        check_exposure(settings)
    except ImproperlyConfigured as error:
        return _found("bad", str(error), "Set what is named, or CODEINFO_BIND=127.0.0.1.")
    if settings.allow_open_access and not settings.api_token:
        return _found(
            "warn",
            f"Everyone who can reach {settings.bind} can use codeinfo without a login.",
            "Set CODEINFO_REQUIRE_LOGIN, CODEINFO_API_TOKEN and CODEINFO_MCP_TOKEN.",
        )
    if requires_credentials(settings) and not settings.mcp_token:
        return _found(
            "warn",
            "A login is required, and agents cannot log in: MCP refuses requests without a "
            "session, also the searches of Codex.",
            "Set CODEINFO_MCP_TOKEN, and CODEINFO_API_TOKEN for programs that call the API.",
        )
    return _found("ok", f"Listens on {settings.bind}.")


def _local_users() -> Finding:
    tokens = "Set CODEINFO_REQUIRE_LOGIN, CODEINFO_API_TOKEN and CODEINFO_MCP_TOKEN"
    match local_users.rule(config()):
        case "own":
            return _found("ok", "Connections of this user and of root are served.")
        case "credentials":
            return _found("ok", "A token or a login is required.")
        case "any":
            detail = "Every user of this machine may use codeinfo without a login."
            return _found("warn", detail, f"{tokens}, or CODEINFO_LOOPBACK_USERS=own.")
        case "unknown":
            detail = "This system does not report the owner of a connection: it serves all users."
            return _found("warn", detail, f"{tokens} if others use this machine.")


def _data_folder(address: Address | None) -> Finding:
    folder = config().data_dir.absolute()
    if problem := start_errors.data_folder_problem(folder):
        return _found("bad", problem)
    if address is None and folder.exists():
        try:
            folder_lock.claim()
        except Unavailable as error:
            if hidden := _hiding_server():
                detail = f"{hidden} must be a file: the server of {folder} is not found."
                return _found("bad", detail, HIDDEN[1])
            return _found("bad", error.message)
        folder_lock.release()
    free = disk.spaces()[0].free
    detail = f"{folder}, {free / 1e9:,.1f} GB free"
    if free < LITTLE_SPACE:
        return _found("warn", detail, "Make room, or set CODEINFO_DATA_DIR to another disk.")
    return _found("ok", detail)


def _hiding_server() -> str:
    """Name what is a folder in the place of a file by which commands find the server."""
    return " and ".join(str(path) for path in disk.misplaced() if path.name in disk.OF_SERVER)


def keep_lost_changes() -> None:
    """Call it before the database is opened: the last connection that closes folds the log."""
    with suppress(Unavailable, OSError):
        folder_lock.claim()
        try:
            lost_changes.keep()
        finally:
            folder_lock.release()


def _private_files() -> Finding:
    """Report the files that the start of this process could not make private."""
    exposed = private_files.exposed_files(config().data_dir, private_files.files_elsewhere())
    if not exposed:
        return _found("ok", "Readable by their owner only.")
    named = ", ".join(f"{file.path} ({file.reason})" for file in exposed[:SHOWN])
    more = f" and {len(exposed) - SHOWN} more" if len(exposed) > SHOWN else ""
    fix = "Have their owner run chmod go= on them, or give this user the data folder."
    return _found("warn", f"Other users may read {named}{more}.", fix)


def _log_file() -> Finding:
    path = config().log_file_path
    folder = path.parent
    writable = os.access(path if path.exists() else folder, os.W_OK)
    if not folder.is_dir() or not writable or path.is_dir():
        return _found(
            "bad",
            f"{path} cannot be written: the log is lost with the process.",
            "Give this user the file, or set LOG_FILE_PATH.",
        )
    return _found("ok", str(path))


def _ingest_base(base: Path) -> Finding:
    fix = "Correct CODEINFO_INGEST_BASE, or give this user the folder."
    try:
        with os.scandir(base) as entries:
            next(iter(entries), None)
    except OSError as error:
        return _found("bad", f"{base} cannot be read: {error.strerror}.", fix)
    return _found("ok", str(base))


def _port(variable: str, port: int, address: Address | None) -> Finding:
    configured = config()
    same = [name for name, other in ports(configured).items() if other == port and name != variable]
    if same:
        return _found("bad", f"The same as {', '.join(same)}.", f"Give {variable} its own.")
    problem = port_problem(configured.bind, port)
    if not problem:
        return _found("ok", "Free.")
    if address and urlsplit(address.url).port == configured.port:
        return _found("ok", "Served by codeinfo, which runs.")
    if address:
        return _found("ok", f"{problem}. The server of this data folder is at {address.url}.")
    if hidden := _hiding_server():
        return _found("warn", f"{problem}. It may be the server that {hidden} hides.")
    if settings.VARIABLES_SET.isdisjoint(ports(configured)):
        return _found("warn", f"{problem}.", "`codeinfo` verbs take the next ones that are free.")
    return _found("bad", f"{problem}.", f"Stop what is there, or set {variable}.")


def _schema() -> Finding:
    try:
        schema.check()
    except ImproperlyConfigured as error:
        return _found("bad", str(error))
    except DatabaseError as error:
        return _found("bad", start_errors.sentence(error) or f"It cannot be read: {error}")
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return _found("ok", "Up to date.")
    count = f"{len(plan)} step{'' if len(plan) == 1 else 's'} behind"
    fix = f"The next start brings it up to date, or: {manage('migrate')}"
    return _found("warn", f"{count}.", fix)


def _behind() -> Finding:
    detail = missing_runs.describe()
    if not detail:
        return _found("ok", "The database has all runs that wrote to the index.")
    return _found(
        "bad",
        detail,
        f"Copy the folder again with codeinfo stopped, or use {manage('backup')} and "
        f"{manage('restore')}. To use it as it is: {manage('verify_index --repair')}.",
    )


def _clients() -> Finding:
    """Report entries of clients that run code of the folder that the client has open."""
    try:
        exposed = exposed_clients(this_machine())
    except RuntimeError:
        return _found("off", "Your user has no home folder.")
    if not exposed:
        return _found("ok", "None of their entries lets a repository run its code.")
    return _found(
        "warn",
        f"The entry of {' and '.join(client.label for client in exposed)} lets a repository that "
        "you open there run its own code. An earlier codeinfo wrote it.",
        f"Replace it: {' && '.join(verb(f'install {client.id}') for client in exposed)}",
    )


def _redis() -> Finding:
    import redis  # noqa: PLC0415 - a package of the extra for several machines

    fix = "Start it, or correct REDIS_URL."
    try:
        with redis.from_url(
            config().redis_url, socket_timeout=3, socket_connect_timeout=3
        ) as client:
            client.ping()
    except redis.RedisError as error:
        return _found("bad", f"{config().redis_url} does not answer: {type(error).__name__}.", fix)
    return _found("ok", config().redis_url)
