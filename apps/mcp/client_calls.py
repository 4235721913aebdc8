"""The last call of each client, for the Connect page: `client_calls.json` in the data folder.

Clients name themselves (`clientInfo`), so names are shortened, and only the last MAX_CLIENTS are
kept. Calls are written a second later, together with those of other processes.
"""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.core.config import config
from apps.core.system import posix

FILE, LOCK = "client_calls.json", "client_calls.lock"
MAX_CLIENTS, MAX_NAME = 50, 48
MAX_BYTES = 64_000
WRITE_SECONDS = 1.0
# The test of the Connect page is not a client.
OWN = "codeinfo-connect-page"


@dataclass(frozen=True)
class LastCall:
    """What a client called last.

    name: as the client says. endpoint: title of the endpoint. call: a tool's name, or a method.
    at: seconds since 1970.
    """

    name: str
    endpoint: str
    call: str
    at: float

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


_lock = threading.Lock()
unwritten: dict[str, LastCall] = {}
_timer: threading.Timer | None = None


def name_of(info: object) -> str:
    """Return the name in a `clientInfo`, of at most MAX_NAME printable characters; "" if none."""
    name = info.get("name") if isinstance(info, Mapping) else None
    if not isinstance(name, str):
        return ""
    return "".join(one for one in name[:MAX_NAME] if one.isprintable()).strip()


def record(name: str, endpoint: str, call: str) -> None:
    """Record a call. Does not block or raise."""
    global _timer
    if not name or name == OWN:
        return
    with _lock:
        unwritten[name] = LastCall(name, endpoint, call[:MAX_NAME], time.time())
        if len(unwritten) > MAX_CLIENTS:
            del unwritten[min(unwritten, key=lambda one: unwritten[one].at)]
        if _timer is None:
            _timer = threading.Timer(WRITE_SECONDS, write, [config().data_dir])
            _timer.start()


def last_calls() -> list[LastCall]:
    """Return the last call of each client, newest first."""
    with _lock:
        recent = dict(unwritten)
    return _merged(_stored(config().data_dir), recent)


def _merged(stored: Mapping[str, LastCall], recent: Mapping[str, LastCall]) -> list[LastCall]:
    known = {**stored, **recent}
    return sorted(known.values(), key=lambda one: one.at, reverse=True)[:MAX_CLIENTS]


def _stored(folder: Path) -> dict[str, LastCall]:
    with suppress(OSError, ValueError, TypeError, KeyError):
        with (folder / FILE).open("rb") as file:
            rows: list[dict[str, Any]] = json.loads(file.read(MAX_BYTES))
        calls = [
            LastCall(str(row["name"]), str(row["endpoint"]), str(row["call"]), float(row["at"]))
            for row in rows[:MAX_CLIENTS]
        ]
        return {call.name: call for call in calls}
    return {}


def write(folder: Path) -> None:
    global _timer
    with _lock:
        _timer = None
        recent = dict(unwritten)
        unwritten.clear()
    # What cannot be written is not shown after a restart.
    with suppress(OSError), posix.open_private(folder / LOCK) as lock:
        posix.lock(lock)
        calls = _merged(_stored(folder), recent)
        content = json.dumps([asdict(call) for call in calls])
        posix.replace_file(folder / FILE, content.encode())
