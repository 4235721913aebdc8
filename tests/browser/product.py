"""The real product in a process of its own, with its ports, data folder and settings."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.ports import free_ports
from tests.support import forks
from tests.support.forks import HOME

START_SECONDS = 180
STOP_SECONDS = 30
POLL_SECONDS = 0.05
SERVE = (sys.executable, "manage.py", "serve")


@dataclass(frozen=True)
class Product:
    """A running server. Folders below `repos` may be ingested."""

    url: str
    data: Path
    repos: Path
    pid: int = 0

    def log(self) -> str:
        """What the process wrote, and of what it died, for a failure's message."""
        files = (self.data.parent / "serve.log", self.data / "logs" / "crashes.log")
        return "".join(file.read_text() for file in files if file.exists())


@contextmanager
def running(
    folder: Path, home: Path = HOME, command: Sequence[str] = SERVE, **environ: str
) -> Iterator[Product]:
    """Serve from `folder`/data, with `folder`/repos as the ingest base, until the block ends.

    Further settings come by their variables' names. Nothing of this process's environment leaks in.
    `home` is where the product's files are, `command` what serves. Without them the process is
    forked, and finds the database of a new data folder migrated.
    """
    port = free_ports(3)
    product = Product(f"http://127.0.0.1:{port}", folder / "data", folder / "repos")
    product.repos.mkdir(parents=True, exist_ok=True)
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PORT": str(port),
        "CODEINFO_DATA_DIR": str(product.data),
        "CODEINFO_INGEST_BASE": str(product.repos),
        "CODEINFO_FIRST_ROOT": "none",
        # What a test changes on the disk is ingested when it says so.
        "CODEINFO_WATCH": "off",
        # Each takes a second to start: tests that want it say so.
        "MCP_FORCE_CODEX_AVAILABLE": "false",
        "CODEINFO_CHROMA": "off",
    }
    env = own | environ
    with (folder / "serve.log").open("wb") as log:
        process: subprocess.Popen[bytes]
        if (home, command) == (HOME, SERVE):
            if not product.data.exists():
                forks.copy_migrated(product.data)
            process = forks.serve(env, log)
        else:
            process = subprocess.Popen(
                command, cwd=home, env=env, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            _wait_until_it_answers(product, process)
            yield replace(product, pid=process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_it_answers(product: Product, process: "subprocess.Popen[bytes]") -> None:
    # The server says nothing that can be waited on before it listens, so it is asked.
    for _ in range(int(START_SECONDS / POLL_SECONDS)):
        if process.poll() is not None:
            break
        try:
            with urlopen(f"{product.url}/version", timeout=5):
                return
        except HTTPError as refusal:
            # It asks for a token, so it is there.
            refusal.close()
            return
        except OSError:  # URLError and TimeoutError among them
            try:
                process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError(f"the server did not start:\n{product.log()}")
