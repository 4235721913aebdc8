"""Data folders that earlier versions have made: this one opens them, and all is there."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.browser.product import Product, running
from tests.kept import folders
from tests.site.commands import env_of, manage
from tests.support.served import until_ingested
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

MOST_BYTES = 300_000


def test_the_present_format_is_kept() -> None:
    """Otherwise `python -m tests.kept` adds it. No other one may be deleted or replaced."""
    assert folders.facts_of(folders.kept()[-1])["format"] == folders.present_format()
    assert all(archive.stat().st_size < MOST_BYTES for archive in folders.kept())


@dataclass(frozen=True)
class Opened:
    product: Product
    facts: dict[str, Any]
    repository: Path

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        method = "GET" if body is None else "POST"
        address = self.product.url + path
        answer = httpx.request(method, address, json=body, timeout=PATIENCE)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def manage(self, *command: str) -> Any:
        env = env_of(
            self.product.data,
            CODEINFO_INGEST_BASE=str(self.product.repos),
            CODEINFO_SECRET_KEY=folders.SECRET,
            PORT=self.product.url.rpartition(":")[2],
        )
        return manage(env, *command)


@pytest.fixture(scope="module", params=folders.kept(), ids=lambda archive: archive.stem)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("kept")
    facts = folders.opened(request.param, folder)
    with running(folder, CODEINFO_SECRET_KEY=folders.SECRET) as product:
        yield Opened(product, facts, folder / "repos" / "lighthouse")


def test_its_administrator_is_still_the_one(opened: Opened) -> None:
    assert "admin" not in opened.product.log()
    assert not (opened.product.data / "admin-password.txt").exists()


def test_its_repository_is_searched(opened: Opened) -> None:
    (repo,) = opened.call("/tools/ingested-repos")["repos"]
    assert (repo["id"], repo["counts"]["files"]) == ("lighthouse", 5)
    question = {"query": "how long to wait before the given attempt"}
    found = opened.call("/tools/vector-search", question)
    assert "degraded" not in found
    best = found["results"][0]
    assert best["relPath"] == "src/retry.py" and "base * 2**attempt" in best["chunk"]
    names = opened.call("/tools/symbol-definitions", {"name": "RetryPolicy"})["results"]
    assert [name["relPath"] for name in names] == ["src/retry.py"]
    lines = opened.call("/tools/grep", {"pattern": "saveShip"})
    assert [line["relPath"] for line in lines["results"]] == ["src/store.js"]


def test_its_conversations_and_agent_runs_are_there(opened: Opened) -> None:
    assert folders.turns(opened.product) == opened.facts["turns"]


def test_its_saved_server_and_doctor_find_all_well_but_that_nothing_answers_there(
    opened: Opened,
) -> None:
    checks = json.loads(opened.manage("doctor", "--json").stdout)["checks"]
    (broken,) = [check for check in checks if check["level"] == "bad"]
    assert broken["id"] == "providers:openai"
    assert broken["detail"].startswith("Nothing answers at http://127.0.0.1:9")


def test_its_index_agrees_with_its_rows_and_is_brought_up_to_date(opened: Opened) -> None:
    done = opened.manage("verify_index")
    assert done.returncode == 0, done.stdout + done.stderr
    (opened.repository / "new.py").write_text("def mooring_line():\n    return 7\n")
    path = quote(str(opened.repository), safe="")
    until_ingested(opened.product, opened.call(f"/ingest/reembed/{path}", {})["runId"])
    found = opened.call("/tools/symbol-definitions", {"name": "mooring_line"})["results"]
    assert [name["relPath"] for name in found] == ["new.py"]
