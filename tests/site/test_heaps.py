"""Threads share the heaps of the C library, so that what one has freed is used by the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from apps.core.system.heap import ARENAS
from tests.house.sources import HOME

pytestmark = pytest.mark.door

# Sixteen threads that have memory at the same time; glibc tells how many heaps there are.
THREADS = """
import ctypes, sys, threading
from apps.core.system.heap import limit_arenas
if sys.argv[2] == "limited":
    limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(17)
def work():
    libc.malloc(ctypes.c_size_t(50_000))
    together.wait(60)
    together.wait(60)
threads = [threading.Thread(target=work) for _ in range(16)]
for each in threads:
    each.start()
together.wait(60)
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
together.wait(60)
"""


def heaps(path: Path, how: str) -> int:
    command = [sys.executable, "-c", THREADS, str(path), how]
    subprocess.run(command, cwd=HOME, check=True, timeout=120)
    return path.read_text().count("<heap nr=")


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heaps")
def test_threads_have_few_heaps(tmp_path: Path) -> None:
    assert heaps(tmp_path / "before.xml", "unlimited") > ARENAS
    assert heaps(tmp_path / "after.xml", "limited") <= ARENAS
