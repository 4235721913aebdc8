"""The stacks of processes that crash: the server, its worker, and the processes of both.

`faulthandler` writes them to a file beside the log, as a process that crashes can write nothing
else. Who notices that it was lost, at the latest the next start, logs them.
"""

import faulthandler
import logging
import os
from typing import IO, Any

from apps.core.config import config
from apps.core.system import posix

logger = logging.getLogger("codeinfo.crashes")

# A process of codeinfo that is started with these and with `file` as its standard error.
VARIABLES = {"PYTHONFAULTHANDLER": "1"}
# What is logged of the file, which is then emptied.
MOST_BYTES = 16_000

# None if this process has not called `record`.
file: IO[bytes] | None = None


def record() -> None:
    """Have this process write its stacks when it crashes. Does nothing if the file cannot be
    opened: the log tells why."""
    global file
    path = config().log_file_path.with_name("crashes.log")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = posix.open_nofollow(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    except OSError:
        return
    file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - as long as the process
    faulthandler.enable(file)


def take() -> dict[str, Any]:
    """Return the stacks for the context of a log entry, and empty the file; {} if there are
    none."""
    if file is None:
        return {}
    stacks = posix.pread(file.fileno(), MOST_BYTES, 0).decode(errors="replace")
    file.truncate(0)
    return {"stack": stacks.splitlines()} if stacks else {}


def log_earlier() -> None:
    """Log the stacks that processes have left that no one has watched, as an earlier server."""
    if stacks := take():
        logger.error("a process has crashed", extra={"context": stacks})
