"""Processes that need not import their libraries anew: each is forked from one that has them
(`forking`), of which a process of pytest has one for each set of libraries.

A process that is forked is a child of the test's process: it is read, waited for and killed as any
other. Tests of a start itself (what it imports, how much it takes, as which user) start Python.
"""

import atexit
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

HOME = Path(__file__).parent.parent.parent
# What takes long, of what a program imports. None of it needs settings, starts a thread or chooses
# the event loop.
OF_SERVER = (
    "django.core.management.commands.migrate",
    "django.core.handlers.asgi",
    "django.contrib.admin.apps",
    "drf_spectacular.utils",
    "csp.middleware",
    "twisted.internet.endpoints",
    "twisted.web.http",
    "autobahn.twisted.websocket",
    "channels.generic.websocket",
    "cryptography.fernet",
    "dulwich.ignore",
    "httpx",
    "jsonschema.protocols",
    "markdown_it",
    "numpy.typing",
    "prometheus_client",
    "pygments.lexers.special",
    "tomlkit",
    "watchfiles",
)
SET_CHILD_SUBREAPER = 36  # of prctl
_one_at_a_time = Lock()


class Forked(subprocess.Popen[Any]):
    """A process of this checkout. Its command is `manage.py ARGUMENTS` or `-m MODULE ARGUMENTS`."""

    def __init__(self, command: Sequence[str], *, libraries: tuple[str, ...], **options: Any):
        self._libraries = libraries
        super().__init__(command, **options)

    def _execute_child(self, *given: Any) -> None:
        # Popen has no other place where something else may start the process.
        command, kept, folder, environ = given[0], given[4], given[5], given[6]
        pipes, in_session = given[10:16], given[21]
        sys.audit("subprocess.Popen", sys.executable, command, folder, environ)
        request = json.dumps([command, environ, str(folder), in_session, kept])
        streams = enumerate((pipes[0], pipes[3], pipes[5]))
        ours = [own if pipe == -1 else pipe for own, pipe in streams]
        with _one_at_a_time:
            self.pid = _fork(_parent(self._libraries), request.encode(), [*ours, *kept])
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def serve(environ: Mapping[str, str], log: IO[bytes]) -> Forked:
    """Start `manage.py serve`."""
    return Forked(
        ("manage.py", "serve"),
        libraries=OF_SERVER,
        cwd=HOME,
        env=environ,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def manage(
    *command: str, environ: Mapping[str, str], timeout: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command of `manage.py` to its end."""
    with Forked(
        ("manage.py", *command),
        libraries=OF_SERVER,
        cwd=HOME,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()  # nothing, if it has ended
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def copy_migrated(data: Path) -> None:
    """Make a data folder that has what `manage.py migrate` leaves in a new one: the database."""
    shutil.copytree(_migrated(), data, ignore=lambda _, names: {*names} - {"codeinfo.sqlite3"})


@cache
def _migrated() -> Path:
    folder = tempfile.mkdtemp(prefix="codeinfo-migrated-")
    atexit.register(shutil.rmtree, folder)
    data = Path(folder, "data")
    environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(data)}
    done = manage("migrate", "--verbosity=0", environ=environ)
    assert done.returncode == 0, done.stderr
    return data


def _fork(parent: socket.socket, request: bytes, descriptors: Sequence[int]) -> int:
    """Return the id of the process that is forked for a request."""
    # A process whose parent has ended belongs to this one: that of the request, as only then.
    _adopt(True)
    try:
        socket.send_fds(parent, [request], descriptors)
        return int(parent.recv(20))
    finally:
        _adopt(False)


def _adopt(yes: bool) -> None:
    assert ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(yes), 0, 0, 0) == 0


@cache
def _parent(libraries: tuple[str, ...]) -> socket.socket:
    """The way to the process that has these libraries. It ends when this is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking", str(theirs.fileno()), *libraries],
        cwd=HOME,
        # As the settings of the product set it, before numpy is imported.
        env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
