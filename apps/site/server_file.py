"""`server.json` in the data folder: where its server listens, and the token of its user's commands.

    {"version": "0.1.0", "pid": 4711, "token": "…", "url": "http://127.0.0.1:5010",
     "mcp": {"tools": "http://127.0.0.1:5010/mcp", "chat": …, "agents": …}}

The server has a lock of `server.lock` while its process lives. So a reader knows from the lock, not
from the process id, whether the file is of a live server (`codeinfo_cli.server`).
"""

import json
import logging
import os
from contextlib import suppress
from typing import BinaryIO

from apps.core import __version__
from apps.core.config import Config
from apps.core.security.authentication import server_token
from apps.core.system import posix
from apps.core.values.addresses import bracketed

NAME, LOCK = "server.json", "server.lock"
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "localhost": "127.0.0.1"}

# A command that looks for a server has the lock for a moment.
LOCK_SECONDS = 0.5

logger = logging.getLogger("codeinfo.site")


def url(settings: Config) -> str:
    """Return the origin at which a program of this machine reaches the server."""
    bound = settings.bind
    host = EVERY_ADDRESS.get(bound, bracketed(bound))
    return f"http://{host}:{settings.port}"


def facts(settings: Config) -> dict[str, object]:
    """Return the contents of the file."""
    base = url(settings)
    return {
        "version": __version__,
        "pid": os.getpid(),
        "token": server_token(),
        "url": base,
        "mcp": {
            "tools": f"{base}/mcp",
            "chat": f"{base}/mcp/chat",
            "agents": f"{base}/mcp/agents",
        },
    }


class ServerFile:
    """The file of this process, from `write` to `remove`."""

    def __init__(self, settings: Config) -> None:
        self._settings = settings
        self._path = settings.data_dir / NAME
        self._lock: BinaryIO | None = None

    def write(self) -> None:
        """Write the file with mode 0600. If that is not possible, log a warning."""
        try:
            self._lock = posix.open_private(self._path.with_name(LOCK))
            if not posix.lock_within(self._lock, LOCK_SECONDS):
                raise OSError("another server of this data folder has it")
            # For `codeinfo stop`, if server.json is lost.
            self._lock.truncate()
            self._lock.write(str(os.getpid()).encode())
            self._lock.flush()
            posix.replace_file(self._path, json.dumps(facts(self._settings)).encode())
        except OSError as error:
            self.close()
            logger.warning("no server.json", extra={"context": {"reason": str(error)}})

    def remove(self) -> None:
        """Remove the file. The lock ends with the process, as it still uses the data folder."""
        if self._lock is not None:
            with suppress(OSError):
                self._path.unlink()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
