"""A Codex home: the folder with its settings, credentials and threads (contract.md §8).

The chat uses CODEINFO_CODEX_HOME; agents have homes below it. An existing file of the chat's home
is never overwritten: it belongs to Codex and the user.
"""

import logging
import os
from pathlib import Path

from apps.core.config import config

log = logging.getLogger("codeinfo.agents")

CONFIG = "config.toml"
AUTH = "auth.json"

SETTINGS = """\
# Settings of Codex in codeinfo. codeinfo creates this file once and never changes it, so you may
# edit it. The options on the chat page override these settings.
check_for_update_on_startup = false
model_reasoning_summary = "auto"

[analytics]
enabled = false
"""


def main_home() -> Path:
    """Return the absolute path of the chat's home."""
    return config().codex_home.absolute()


def prepare(home: Path) -> None:
    """Create a home with settings and credentials; keep existing files.

    Credentials are copied from the host's Codex or, for an agent's home, from the chat's home, with
    mode 0600; they are never logged. An agent's home gets the chat's settings on every call,
    because an agent's own settings are passed with each thread. Raises OSError.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home == main_home():
        _write_once(home / CONFIG, SETTINGS.encode())
        _copy_credentials(config().host_codex_home / AUTH, home / AUTH)
    else:
        prepare(main_home())
        (home / CONFIG).write_bytes((main_home() / CONFIG).read_bytes())
        _copy_credentials(main_home() / AUTH, home / AUTH)


def signature(home: Path) -> tuple[int, ...]:
    """Return the mtimes (ns) of credentials and settings: they change with a login or an edit."""
    return tuple(_mtime_ns(home / name) for name in (AUTH, CONFIG))


def missing(home: Path) -> str:
    """Name the missing files: `Missing auth.json in …`, or ""."""
    names = [f"{name} in {home}" for name in (AUTH, CONFIG) if not (home / name).is_file()]
    return f"Missing {' and '.join(names)}" if names else ""


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _copy_credentials(source: Path, target: Path) -> None:
    try:
        data = source.read_bytes()
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            log.warning("Codex' credentials could not be read: %s", error.strerror)
        return
    if _write_once(target, data):
        log.info("Codex' credentials were copied", extra={"context": {"to": str(target)}})


def _write_once(path: Path, data: bytes) -> bool:
    """Write a file atomically unless it exists. Return True if it was written."""
    if path.exists():
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(data)
    try:
        # A link is atomic and never replaces a file.
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True
