"""Where the rounds happen: a disk, repositories, a server, and what has been told to it."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.ports import free_ports
from tests.soak import repositories
from tests.soak.disk import Disk
from tests.soak.power import Power
from tests.soak.server import Server

MODEL = "static-code-256-v2"
RESERVE_MB = 24
RECORD, MEMORY = "rounds.jsonl", "soak.json"


@dataclass
class World:
    """`sent`: conversation → messages that the server has accepted and must store."""

    folder: Path
    seed: int
    sent: dict[str, list[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.disk = Disk(self.folder / "disk.img", self.folder / "disk")
        self.data = self.disk.folder / "data"
        base = self.folder / "repos"
        self.roots = repositories.make(base, Random(self.seed))
        for root in self.roots:
            repositories.bring_back(root)
        self.disk.free()
        self.power = Power(self.data, self.folder / "backing")
        self.clock = self.folder / "clock"
        self.clock.write_text("+0")
        port = free_ports(3)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PORT": str(port),
            "CODEINFO_DATA_DIR": str(self.data),
            "CODEINFO_INGEST_BASE": str(base),
            "CODEINFO_FIRST_ROOT": "none",
            "CODEINFO_DISK_RESERVE_MB": str(RESERVE_MB),
            "CODEINFO_API_RATE": "0",
            "CODEINFO_CHAT_RATE": "0",
            "MCP_FORCE_CODEX_AVAILABLE": "false",
            # A batch is small, so that a fault falls between two of them.
            "INGEST_FLUSH_EVERY": "5",
        }
        self.server = Server(port, self.environ, self.folder / "serve.log", self.clock)
        self._recall()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.disk.free()
        try:
            self.server.close()
        finally:
            self.power.close()
            self.disk.close()

    @property
    def done(self) -> int:
        """Rounds that have been played in this folder, by this call and earlier ones."""
        return len(self.records())

    def records(self) -> list[dict[str, Any]]:
        path = self.folder / RECORD
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def record(self, facts: dict[str, Any]) -> None:
        with (self.folder / RECORD).open("a") as file:
            file.write(json.dumps(facts) + "\n")
        # With the data: where that begins again, so do the promises.
        (self.data / MEMORY).write_text(json.dumps(self.sent))

    def _recall(self) -> None:
        path = self.data / MEMORY
        self.sent = json.loads(path.read_text()) if path.exists() else {}
