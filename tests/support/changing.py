"""Another process that changes the index of this data folder."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from apps.core.config import config
from tests.house.sources import HOME

# Says what happens in lines. It changes the index until its input ends.
PROGRAM = """
import sys
import django
django.setup()
from apps.core.errors import Conflict
from apps.index import freeze
try:
    with freeze.changing(wait=False):
        print("free", flush=True)
except Conflict as refused:
    print(refused.code, flush=True)
with freeze.changing():
    print("changing", flush=True)
    sys.stdin.read()
print("changed", flush=True)
"""


class Other:
    def __init__(self, process: "subprocess.Popen[str]", output: IO[str]) -> None:
        self.kill = process.kill
        self._process, self._output = process, output

    def says(self) -> str:
        return self._output.readline().strip()

    def end(self) -> str:
        """Let it end its change. Return what it has said since it was last heard."""
        return self._process.communicate()[0].strip()


@contextmanager
def other_process() -> Iterator[Other]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=HOME,
        env={**os.environ, "CODEINFO_DATA_DIR": str(config().data_dir)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout
            yield Other(process, process.stdout)
        finally:
            process.kill()
