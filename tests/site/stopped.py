"""A data folder in which a server has ingested, and is stopped."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

from tests.browser.product import Product, running
from tests.site.commands import env_of, manage
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into

PATIENCE = 120
SHIPS = {f"ship_{n}.py": f"def sail_{n}(wind):\n    return wind * {n}\n" for n in range(450)}


def call(product: Product, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(product.url + path, data, {"content-type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@dataclass(frozen=True)
class Home:
    """A folder in which a server has ingested two repositories, and is stopped."""

    folder: Path
    ships: UUID

    def serve(self, **environ: str) -> Any:
        return running(self.folder, **environ)

    def doctor(self) -> str:
        """What it prints while no server runs."""
        repos = str(self.folder / "repos")
        done = manage(env_of(self.folder / "data", CODEINFO_INGEST_BASE=repos), "doctor")
        return done.stdout + done.stderr


def made(folder: Path) -> Home:
    with running(folder) as product:
        ingest_into(product, write_files(product.repos / "ships", SHIPS))
        ingest_into(product, write_files(product.repos / "lighthouse", SAMPLE))
    with closing(sqlite3.connect(folder / "data" / "codeinfo.sqlite3")) as database:
        (key,) = database.execute("SELECT id FROM index_root WHERE name = 'ships'").fetchone()
    return Home(folder, UUID(key))
