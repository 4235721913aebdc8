"""Starting other programs: one function, an environment of their own, and a bounded end.

Every program that codeinfo starts is started here (a test checks it). It gets the variables that
the caller names and no others, so that no key of ours, and no variable of a folder or a shell,
reaches it; and it never runs in the current folder, from which Python and git would load things.
"""

import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The umask of programs that are not codeinfo's own: the one that this process was started with,
# once `apps.core.private_files` has set another. -1 leaves the umask as it is.
user_umask = -1

PROJECT = Path(__file__).resolve().parents[2]


def import_path() -> dict[str, str]:
    """The variable with which a process of codeinfo itself finds codeinfo and what it imports."""
    return {"PYTHONPATH": os.pathsep.join([str(PROJECT), *filter(None, sys.path)])}


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str = "/",
    own: bool = False,
    **pipes: Any,
) -> "subprocess.Popen[bytes]":
    """Start `command` with exactly the variables of `env`, in `cwd`.

    `own`: a process of codeinfo itself, which keeps codeinfo's umask. `pipes` are the standard
    streams and descriptors, as subprocess.Popen takes them. Raises OSError where it does not start.
    """
    umask = -1 if own else user_umask
    return subprocess.Popen(list(command), env=dict(env), cwd=cwd, umask=umask, **pipes)


class OutputTooLarge(subprocess.SubprocessError):
    """A program wrote more than it may."""


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    data: bytes,
    seconds: float,
    most_bytes: int,
    cwd: str = "/",
    own: bool = False,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `command` to its end, with `data` as its input, and return what it wrote.

    Raises subprocess.TimeoutExpired after `seconds`, and OutputTooLarge where one of its two
    outputs has more than `most_bytes`, the process being killed; OSError where it does not start.
    """
    # Input from a file: it cannot block, however little of it the program reads.
    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        pipes = {"stdin": given, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with start(command, env=env, cwd=cwd, own=own, **pipes) as process:
            try:
                output, errors = _read(process, time.monotonic() + seconds, most_bytes)
            finally:
                # Nothing happens to one that has ended.
                process.kill()
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def _read(
    process: "subprocess.Popen[bytes]", deadline: float, most_bytes: int
) -> tuple[bytes, bytes]:
    """Both outputs of a process to their ends, and its end."""
    assert process.stdout is not None and process.stderr is not None
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for descriptor in outputs:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for ready, _ in selector.select(_remaining(process, deadline)):
                piece = os.read(ready.fd, 65_536)
                if not piece:
                    selector.unregister(ready.fd)
                outputs[ready.fd] += piece
                if len(outputs[ready.fd]) > most_bytes:
                    raise OutputTooLarge(f"More than {most_bytes:,} bytes of output")
    process.wait(_remaining(process, deadline))
    output, errors = outputs.values()
    return bytes(output), bytes(errors)


def _remaining(process: "subprocess.Popen[bytes]", deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise subprocess.TimeoutExpired(process.args, 0)
    return seconds
