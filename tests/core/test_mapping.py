"""Mapped files that get shorter while a process reads them."""

import signal
import subprocess
import sys

import pytest

from tests.house.sources import HOME

pytestmark = [pytest.mark.door, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]

SIZE = 8 << 20
# Reads a file that is shortened after it was mapped, in several threads and ways.
READER = f"""
import os, sys, zlib
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import numpy as np
from apps.core.system import mapping

path, threads = sys.argv[1], int(sys.argv[2])
if sys.argv[3] == "survive":
    mapping.survive()
cut = Barrier(threads, lambda: os.truncate(path, {SIZE} // 3))

def opened():
    with open(path, "rb") as file:
        return mapping.Mapping.of(file.fileno(), {SIZE}, Path(path))

@mapping.read_again
def read(number):
    try:
        one = opened()
    except ValueError:
        return "it is shorter"
    cut.wait()
    content = np.frombuffer(one, np.uint8)
    (
        lambda: int((content > 7).sum()),
        lambda: zlib.crc32(one),
        lambda: content[:: 4097].tolist(),
        lambda: bytes(one[-5:]),
    )[number % 4]()
    assert one.is_lost
    raise LookupError("zeros are no content")

with ThreadPoolExecutor(threads) as pool:
    print(set(pool.map(read, range(threads))))
"""


def read(folder: str, threads: int, how: str) -> "subprocess.CompletedProcess[str]":
    path = f"{folder}/file"
    with open(path, "wb") as file:
        file.write(b"x" * SIZE)
    return subprocess.run(
        [sys.executable, "-c", READER, path, str(threads), how],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.fault("A file of the index gets shorter")
@pytest.mark.parametrize("threads", [1, 8])
def test_what_was_read_while_a_file_got_shorter_is_read_again(
    tmp_path: object, threads: int
) -> None:
    done = read(str(tmp_path), threads, "survive")
    assert (done.stdout, done.stderr) == ("{'it is shorter'}\n", "")


def test_without_that_the_process_ends(tmp_path: object) -> None:
    assert read(str(tmp_path), 1, "die").returncode == -signal.SIGBUS


# Sent by the process to itself: from outside it may interrupt a thread that waits for Python's
# lock, which the handler waits for then. A file that gets shorter interrupts no such thread.
SENT = """
import faulthandler, signal
from apps.core.system import mapping

faulthandler.enable()
mapping.survive()
signal.raise_signal(signal.SIGBUS)
"""


def test_a_signal_that_no_mapping_explains_leaves_the_stacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SENT], cwd=HOME, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGBUS
    assert "Fatal Python error: Bus error" in done.stderr
