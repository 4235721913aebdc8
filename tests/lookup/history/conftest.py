"""A repository with a history, ingested once for all tests of a module."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.git import git, init
from tests.support.ingested import ingested_once, write_files

__all__ = ["ask", "fleet"]

PRIVATE_KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n" * 4
    + "-----END PRIVATE KEY-----\n"
)
SHIP = (
    "def speed(ship):\n    return ship.knots\n\n\n"
    "def length(ship):\n    return ship.feet\n\n\n"
    "def crew(ship):\n    return ship.hands\n"
)
METRES = SHIP.replace("ship.feet", "ship.metres")
# (author, day, message, files; None removes one)
COMMITS: tuple[tuple[str, str, str, dict[str, str | None]], ...] = (
    (
        "Ada",
        "2024-01-01",
        "Add ships",
        {
            "src/ship.py": SHIP,
            "src/old.py": "".join(f"OLD_{n} = {n}\n" for n in range(9)),
            "README.md": "# Fleet\n",
            ".env": "TOKEN=abc-secret\n",
            "notes/server.txt": PRIVATE_KEY,
            "config/local.ini": "password = hunter2\n",
            "vendor/lib.py": "VENDOR = 1\n",
            "private/plan.py": "PLAN = 'hidden'\n",
        },
    ),
    (
        "Ben",
        "2024-02-02",
        "Measure in metres\n\nFeet confused the harbour master: see the accident of May.",
        {"src/ship.py": METRES},
    ),
    (
        "Cora",
        "2024-03-03",
        "Take the secrets out",
        {
            ".env": None,
            "notes/server.txt": "The key is in the safe.\n",
            "config/local.ini": None,
            "vendor/lib.py": None,
            "private/plan.py": "PLAN = 'still hidden'\n",
            ".gitignore": "config/\n",
            ".codeinfoignore": "private/\n",
        },
    ),
    (
        "Dan",
        "2024-04-04",
        "Rename old",
        {"src/old.py": None, "src/new.py": "".join(f"OLD_{n} = {n}\n" for n in range(9)) + "# x\n"},
    ),
)


def make(folder: Path) -> Path:
    """Write the repository `fleet`, with a line at the top of a file that is not committed."""
    init(folder, "-b", "main")
    for author, day, message, files in COMMITS:
        commit(folder, author, day, message, files)
        if author == "Ben":
            git(folder, "tag", "-a", "v1", "-m", "One")
    git(folder, "branch", "release", "HEAD~1")
    write_files(folder, {"src/ship.py": f"# Ships\n{METRES}"})
    return folder


def commit(folder: Path, author: str, day: str, message: str, files: dict[str, str | None]) -> None:
    write_files(folder, {name: text for name, text in files.items() if text is not None})
    for name, text in files.items():
        if text is None:
            (folder / name).unlink()
    git(folder, "add", "-A", "-f", ".")
    who = f"{author} <{author}@mail.example>"
    git(folder, "commit", "-q", f"--author={who}", f"--date={day}T12:00:00+00:00", "-m", message)


@pytest.fixture(scope="module")
def fleet(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of `fleet`. A test must leave it as it is."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("history")))
    make(base / "fleet")
    with ingested_once(django_db_blocker, base, {"fleet": {}}):
        yield base / "fleet"


Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(client: Client) -> Ask:
    """ask(of="log") is the status and the JSON of History about `fleet`."""

    def asked(**body: Any) -> tuple[int, dict[str, Any]]:
        form = {"repository": "fleet"} | body
        response = client.post("/tools/history", form, content_type="application/json")
        return response.status_code, response.json()

    return asked
