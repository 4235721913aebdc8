"""A Codex home: the folder of its settings, credentials and threads.

The one of the chat is CODEINFO_CODEX_HOME; agents have homes of their own below it. What is in a
home is Codex' and the user's: a file that is there is never written again.
"""

import logging
import os
from pathlib import Path

from apps.core.config import config

log = logging.getLogger("codeinfo.agents")

CONFIG = "config.toml"
AUTH = "auth.json"

SETTINGS = """\
# Settings of Codex where it answers in codeinfo. Made once and yours to change: codeinfo never
# writes this file again. What is chosen on the chat page goes before what stands here.
check_for_update_on_startup = false
model_reasoning_summary = "auto"

[analytics]
enabled = false
"""


def main_home() -> Path:
    """The home that the chat uses."""
    return config().codex_home.absolute()


def prepare(home: Path) -> None:
    """Make a home ready: settings and credentials, each only where there are none.

    Credentials come from the host's own Codex or, for an agent's home, from the chat's. They are
    copied for their owner's eyes only; nothing of them is logged. The settings of an agent's home
    are those of the chat, each time: what is the agent's own comes with each of its threads.
    Raises OSError.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    config().codex_workdir.mkdir(parents=True, exist_ok=True)
    if home == main_home():
        _write_once(home / CONFIG, SETTINGS.encode())
        _copy_credentials(config().host_codex_home / AUTH, home / AUTH)
    else:
        prepare(main_home())
        (home / CONFIG).write_bytes((main_home() / CONFIG).read_bytes())
        _copy_credentials(main_home() / AUTH, home / AUTH)


def signature(home: Path) -> tuple[int, ...]:
    """Changes when somebody logs in or out, or edits the settings, from outside."""
    return tuple(_stamp(home / name) for name in (AUTH, CONFIG))


def missing(home: Path) -> str:
    """Which files a working home has and this one lacks: `Missing auth.json in …`, or nothing."""
    lacking = [name for name in (AUTH, CONFIG) if not (home / name).is_file()]
    return "Missing " + " and ".join(f"{name} in {home}" for name in lacking) if lacking else ""


def _stamp(path: Path) -> int:
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
    """Whether it was written; a file that is there, or comes meanwhile, stays as it is."""
    if path.exists():
        return False
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(data)
    try:
        # Whole or not at all, and never over another.
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True
