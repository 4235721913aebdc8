"""Data folders that are damaged, as a real server, `/health` and `manage.py doctor` tell of them.

Each is damaged between two starts. `python -m tests.site.test_damaged_folders` prints what is said.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

import pytest

from tests.browser.product import HOME, Product, running
from tests.support import damage
from tests.support.damage import Harm
from tests.support.ingested import SAMPLE, write_files

pytestmark = pytest.mark.door

PATIENCE = 120
KINDS: tuple[Harm, ...] = (
    damage.chroma_deleted,
    damage.database_overwritten,
    damage.database_deleted,
    damage.index_deleted,
    damage.vectors_flipped,
)


def call(product: Product, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(product.url + path, data, {"content-type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def until(answers: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
    """What is said once it is so."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if is_so(answer := answers()):
            return answer
    raise AssertionError(answer)


def roots(product: Product) -> list[Any]:
    found: list[Any] = call(product, "/ingest/roots")["roots"]
    return found


def ingest(product: Product, name: str, files: dict[str, str]) -> None:
    path = str(write_files(product.repos / name, files))
    model = call(product, "/ingest/models")["models"][0]["id"]
    body = {"path": path, "name": name, "model": model}
    run = call(product, "/ingest/start", body)["runId"]
    until(
        lambda: call(product, f"/ingest/status/{run}")["state"], lambda state: state == "completed"
    )


@dataclass(frozen=True)
class Home:
    """A folder in which a server has ingested two repositories, and is stopped."""

    folder: Path
    ships: UUID

    def serve(self, **environ: str) -> Any:
        return running(self.folder, **environ)

    def doctor(self) -> str:
        """What it prints while no server runs."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CODEINFO_DATA_DIR": str(self.folder / "data"),
            "CODEINFO_INGEST_BASE": str(self.folder / "repos"),
            "MCP_FORCE_CODEX_AVAILABLE": "false",
        }
        command = [sys.executable, "manage.py", "doctor"]
        done = subprocess.run(
            command, cwd=HOME, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr


def made(folder: Path) -> Home:
    with running(folder) as product:
        ingest(product, "ships", damage.many_files())
        ingest(product, "lighthouse", SAMPLE)
    with closing(sqlite3.connect(folder / "data" / "codeinfo.sqlite3")) as database:
        (key,) = database.execute("SELECT id FROM index_root WHERE name = 'ships'").fetchone()
    return Home(folder, UUID(key))


def answers_of(home: Home, how: Harm) -> dict[str, Any]:
    """What is said of a folder that is damaged so, by whom; it is mended in the end."""
    how(home.folder / "data" / "chroma", home.ships)
    # They have the vectors too.
    shutil.rmtree(home.folder / "data" / "mapped", ignore_errors=True)
    answers: dict[str, Any] = {"doctor": home.doctor()}
    with home.serve(CODEINFO_INGEST_REPAIR="ask") as product:
        answers["/health"] = until(lambda: call(product, "/health"), is_bad)
        answers["search"] = call(product, "/tools/vector-search", {"query": "sail_17"})
        answers["roots"] = roots(product)
    with home.serve() as product:
        until(lambda: roots(product), lambda found: not any(each["damage"] for each in found))
        answers["mended"] = call(product, "/tools/vector-search", {"query": "sail_17"})
        answers["/health in the end"] = until(lambda: call(product, "/health"), is_good)
    return answers


def is_bad(health: Any) -> bool:
    return bool(health["parts"]["chroma"]["state"] == "bad")


def is_good(health: Any) -> bool:
    return bool(health["parts"]["chroma"]["state"] == "ok")


def vector_store_of(doctor: str) -> str:
    """Its line and the one below it."""
    lines = doctor.splitlines()
    at = next(number for number, line in enumerate(lines) if "Vector store" in line)
    return "\n".join(lines[at : at + 2])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return made(tmp_path_factory.mktemp("damaged"))


def test_a_mapped_copy_answers_for_vectors_that_are_lost(home: Home) -> None:
    question = {"query": "sail_17"}
    with home.serve() as product:
        before = call(product, "/tools/vector-search", question)
        copies = home.folder / "data" / "mapped"
        until(lambda: sorted(copies.glob("*/*.json")), lambda found: len(found) == 2)
    damage.chroma_deleted(home.folder / "data" / "chroma", home.ships)
    with home.serve(CODEINFO_INGEST_REPAIR="ask") as product:
        until(lambda: call(product, "/health"), is_bad)
        found = call(product, "/tools/vector-search", question)
    assert "degraded" not in found
    assert [each["relPath"] for each in found["results"]] == [
        each["relPath"] for each in before["results"]
    ]
    assert all(each["score"] is not None for each in found["results"])


@pytest.mark.fault("Vectors are lost", "Vectors are damaged")
@pytest.mark.parametrize("how", KINDS)
def test_a_damaged_folder_is_told_answers_by_words_and_is_mended(home: Home, how: Harm) -> None:
    answers = answers_of(home, how)
    assert "BROKEN  Vector store" in answers["doctor"]
    assert "ingests these folders again" in answers["doctor"]
    assert "1 broken" in answers["doctor"]
    health = answers["/health"]
    assert (health["status"], health["degraded"]) == ("ok", ["chroma"])
    assert "ships: 450 of 450 vectors are missing" in health["parts"]["chroma"]["detail"]
    assert answers["search"]["results"][0]["relPath"] == "ship_17.py"
    assert "ships: 450 of 450 vectors are missing" in answers["search"]["degraded"]
    assert "degraded" not in answers["mended"]


def show() -> None:
    """Print the answers for each kind of damage.

    Call it with `manage.py shell -c "from tests.site.test_damaged_folders import show; show()"`.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = made(Path(folder))
        for how in KINDS:
            answers = answers_of(home, how)
            print(f"\n## {how.__name__}\ndoctor:\n{vector_store_of(answers['doctor'])}")
            health = answers["/health"]
            print(f"/health: degraded {health['degraded']}, {health['parts']['chroma']}")
            search, repaired = answers["search"], answers["/health in the end"]
            print(f"search: {len(search['results'])} results, {search['degraded']}")
            print(f"mended: {repaired['parts']['chroma']}")
