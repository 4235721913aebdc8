"""Starts other programs, with an explicit environment and a time limit.

codeinfo starts all programs here (a test checks that). A program gets only the variables that the
caller passes, so no secret leaks into it. It does not run in the current folder, from which Python
and git would load files.
"""

import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[3]


def import_path() -> dict[str, str]:
    """Return the environment that a process of codeinfo needs to import its modules."""
    return {"PYTHONPATH": os.pathsep.join([str(PROJECT), *filter(None, sys.path)])}


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str = "/",
    **pipes: Any,
) -> "subprocess.Popen[bytes]":
    """Start `command` with exactly the variables of `env`, in `cwd`. Raises OSError.

    Its umask is that of codeinfo: files that it writes are private.

    pipes: the standard streams and descriptors, as for subprocess.Popen
    """
    return subprocess.Popen(list(command), env=dict(env), cwd=cwd, **pipes)


class OutputTooLarge(subprocess.SubprocessError):
    """The output of a program exceeded its limit."""


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    data: bytes,
    seconds: float,
    most_bytes: int,
    cwd: str = "/",
    started: Callable[[Callable[[], None]], None] = lambda kill: None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `command` to its end and return its output.

    data: its standard input
    seconds: time limit; then it is killed, and subprocess.TimeoutExpired is raised
    most_bytes: limit of each output; above it the program is killed, and OutputTooLarge is raised
    started: called once it runs, with a function that kills it

    Raises OSError if it does not start.
    """
    # A file as input cannot block, even if the program does not read it.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(data)
        stdin.seek(0)
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with start(command, env=env, cwd=cwd, **pipes) as process:
            try:
                started(process.kill)
                output, errors = _read(process, time.monotonic() + seconds, most_bytes)
            finally:
                # No effect if the process has ended.
                process.kill()
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def _read(
    process: "subprocess.Popen[bytes]", deadline: float, most_bytes: int
) -> tuple[bytes, bytes]:
    """Read both outputs of a process, and wait for its end."""
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
