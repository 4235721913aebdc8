"""The `codeinfo` command as its users run it: processes of its own, with a data folder."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.terminal import Terminal
from tests.house.sources import HOME
from tests.ports import free_ports
from tests.support import forks
from tests.support.ingested import SAMPLE, write_files

CODEINFO = HOME / "scripts" / "codeinfo"
SECONDS = 120

HARBOUR = {
    "harbour.py": (
        "def berth(ship: str, berths: int) -> int:\n"
        '    """The berth of a ship."""\n'
        "    return hash(ship) % berths\n"
    ),
}


@dataclass
class Command:
    """Runs verbs. `home` is the user's home folder, below which may be ingested."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def lighthouse(self) -> Path:
        return self.home / "src" / "lighthouse"

    def run(
        self, *arguments: str, cwd: Path | None = None, status: int = 0, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a verb in the folder of the sample repository, and check its exit status."""
        done = self.of([str(CODEINFO), *arguments], cwd, **environ)
        assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def of(
        self, command: Sequence[str], cwd: Path | None = None, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=cwd or self.lighthouse,
            env=self.environment | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def terminal(self, *arguments: str, columns: int = 80, **environ: str) -> Terminal:
        """Run a verb on a terminal, in the folder of the sample repository."""
        return Terminal(
            [str(CODEINFO), *arguments], self.lighthouse, self.environment | environ, columns
        )

    def lines(self, *arguments: str, **options: Any) -> list[str]:
        return self.run(*arguments, **options).stdout.splitlines()

    def json(self, *arguments: str, **options: Any) -> Any:
        return json.loads(self.run(*arguments, "--json", **options).stdout)


@contextmanager
def command(home: Path, *, is_new: bool = False, **environ: str) -> Iterator[Command]:
    """A home folder with the folders of two repositories, which are not ingested yet. The server of
    its data folder is stopped at the end. The data folder has a migrated database, or `is_new`: it
    is not there."""
    port = free_ports(3)
    home = home.resolve()
    environment = {
        "PATH": f"{_bin(home)}:{os.environ['PATH']}",
        "HOME": str(home),
        "PORT": str(port),
        "MCP_PORT": str(port + 1),
        "AGENTS_MCP_PORT": str(port + 2),
        "CODEINFO_DATA_DIR": str(home / "data"),
        "CODEINFO_INGEST_BASE": str(home / "src"),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_WATCH": "off",
        "CODEINFO_IDLE_STOP_SECONDS": "600",
        "MCP_FORCE_CODEX_AVAILABLE": "false",
        "CODEINFO_CHROMA": "off",
        "TERM": "xterm-256color",
    }
    made = Command(home, environment | environ)
    write_files(made.lighthouse, SAMPLE)
    write_files(home / "src" / "harbour", HARBOUR)
    if not is_new:
        forks.copy_migrated(made.data)
    try:
        yield made
    finally:
        made.of([str(CODEINFO), "stop", "--yes"])


def _bin(home: Path) -> Path:
    """A folder of the PATH that has `codeinfo`, as a link."""
    folder = home / "bin"
    folder.mkdir()
    (folder / "codeinfo").symlink_to(CODEINFO)
    return folder
