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
from functools import partial
from pathlib import Path
from typing import Any

from apps.core.system import posix

TICKS = 5
PROJECT = Path(__file__).resolve().parents[3]


def import_path() -> dict[str, str]:
    """Return the environment that a process of codeinfo needs to import its modules."""
    return {"PYTHONPATH": os.pathsep.join([str(PROJECT), *filter(None, sys.path)])}


def start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str = "/", **pipes: Any
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
    on_stderr: Callable[[bytes], None] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `command` to its end and return its output.

    data: its standard input
    seconds: time limit; then it is killed, and subprocess.TimeoutExpired is raised
    most_bytes: limit of each output; above it the program is killed, and OutputTooLarge is raised
    started: called once it runs, with a function that kills it
    on_stderr: called with each piece of its error output, and with none TICKS times a second; what
        it raises ends the program

    Programs that it has started are killed with it. Raises OSError if it does not start.
    """
    # A file as input cannot block, even if the program does not read it.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(data)
        stdin.seek(0)
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with start(command, env=env, cwd=cwd, start_new_session=True, **pipes) as process:
            try:
                started(partial(_kill, process))
                output, errors = _read(process, time.monotonic() + seconds, most_bytes, on_stderr)
            finally:
                _kill(process)
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program and those that it has started, unless it has ended."""
    if process.returncode is None:
        posix.kill_group(process.pid)
        process.kill()


def _read(
    process: "subprocess.Popen[bytes]",
    deadline: float,
    most_bytes: int,
    on_stderr: Callable[[bytes], None] | None,
) -> tuple[bytes, bytes]:
    """Read both outputs of a process, and wait for its end."""
    assert process.stdout is not None and process.stderr is not None
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for descriptor in outputs:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            remaining = _remaining(process, deadline)
            for ready, _ in selector.select(min(remaining, 1 / TICKS) if on_stderr else remaining):
                piece = os.read(ready.fd, 65_536)
                if not piece:
                    selector.unregister(ready.fd)
                outputs[ready.fd] += piece
                if len(outputs[ready.fd]) > most_bytes:
                    raise OutputTooLarge(f"More than {most_bytes:,} bytes of output")
                if on_stderr and ready.fd == process.stderr.fileno():
                    on_stderr(piece)
            if on_stderr:
                on_stderr(b"")
    process.wait(_remaining(process, deadline))
    output, errors = outputs.values()
    return bytes(output), bytes(errors)


def _remaining(process: "subprocess.Popen[bytes]", deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise subprocess.TimeoutExpired(process.args, 0)
    return seconds
