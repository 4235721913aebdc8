"""A process that has ended, and whose parent has not taken note of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def zombie() -> Iterator[int]:
    """Yield the id of a zombie, which is buried at the end of the block."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid
