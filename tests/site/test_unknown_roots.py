"""A database that is new on an index that is not: nothing is deleted, and everybody is told."""

import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.test import Client

from apps.index.models import Installation, RemovedRoot, Root
from apps.ingest.runs import orphans, queue, sweep
from tests.browser.product import Product, running
from tests.support import forks
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.parts import clear_index
from tests.support.served import ingest_into
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PATIENCE = 60


def doctor(product: Product, *command: str) -> "subprocess.CompletedProcess[str]":
    """A command on the product's data folder, beside its server or after it."""
    env = {
        "PATH": str(Path(sys.executable).parent),
        "HOME": str(product.data.parent),
        "CODEINFO_DATA_DIR": str(product.data),
        "CODEINFO_INGEST_BASE": str(product.repos),
        "PORT": product.url.rpartition(":")[2],
        "MCP_FORCE_CODEX_AVAILABLE": "false",
    }
    return forks.manage(*command, environ=env)


@pytest.mark.fault("The database is lost or replaced")
@pytest.mark.parametrize("has_schema", [False, True])
def test_after_its_database_was_deleted_a_start_deletes_nothing_and_says_so(
    tmp_path: Path, has_schema: bool
) -> None:
    with running(tmp_path) as product:
        repo = write_files(product.repos / "lighthouse", SAMPLE)
        ingest_into(product, repo)
    (part,) = (product.data / "index").iterdir()
    for file in product.data.glob("codeinfo.sqlite3*"):
        file.unlink()
    if has_schema:
        # As that of a copy without the log of a young installation.
        environment = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
        assert forks.manage("migrate", "--verbosity=0", environ=environment).returncode == 0
    # The first root is not ingested over it, either.
    with running(tmp_path, CODEINFO_FIRST_ROOT=str(repo)) as product:
        log = product.log()
        assert "the index has 1 folder that is not in this database" in log, log
        told = log.index("conversations, users and settings of the database that it had")
        assert told < log.index("(shown once)"), "before a user is created"
        assert str(repo) in log
        assert httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"] == []
        report = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
        assert report["parts"]["orphans"]["state"] == "warn" and "orphans" in report["degraded"]
        (found,) = [
            each
            for each in json.loads(doctor(product, "doctor", "--json").stdout)["checks"]
            if each["id"] == "orphans"
        ]
        assert str(repo) in found["detail"]
        assert "conversations and users are missing, too" in found["detail"]
        page = httpx.get(f"{product.url}/ingest", timeout=PATIENCE).text
        assert "not in this database" in page and "conversations and users are missing" in page
        # A run comes after a sweep: the sweep has left everything.
        ingest_into(product, repo)
        assert "not in this database" not in httpx.get(f"{product.url}/", timeout=PATIENCE).text
        assert part.exists()
        report = doctor(product, "doctor")
        (line,) = [each for each in report.stdout.splitlines() if "manage.py drop_index" in each]
        root_id = line.rpartition("drop_index ")[2].strip()
        dropped = doctor(product, "drop_index", root_id)
        assert f"Deleted {repo} ({root_id}): 1 file." in dropped.stdout, dropped.stderr
        assert not part.exists()
        wait_until(
            lambda: (
                "orphans"
                not in httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["degraded"]
            )
        )
    assert "Every index has a folder" in doctor(product, "doctor").stdout


@pytest.fixture
def unknown(transactional_db: None, folder: Path) -> Any:
    """The repository that the index names and the database does not know."""
    clear_index()
    repo = write_files(folder / "lighthouse", SAMPLE)
    ingest(repo)
    # RemovedRoot last: it keeps what the deletion of the root has written.
    for rows in (Root.objects, Installation.objects, RemovedRoot.objects):
        rows.all().delete()
    yield repo
    clear_index()
    sweep.sweep()


@pytest.mark.fault("The database is lost or replaced")
def test_the_page_offers_to_ingest_it_again(unknown: Path, client: Client) -> None:
    assert "not in this database" in client.get("/").content.decode()
    page = client.get("/ingest").content.decode()
    assert str(unknown) in page
    (orphan,) = orphans.find()
    answer = client.post(
        "/ui/ingest/again", {"root": [str(orphan.root)]}, headers={"HX-Request": "true"}
    )
    assert "1 ingest queued" in answer.headers["HX-Trigger"]
    queue.drain()
    assert Root.objects.get().path == str(unknown)
    assert "not in this database" not in client.get("/ingest").content.decode()
    assert orphans.find() == [orphan]


def test_doctor_lists_it_with_the_command(unknown: Path) -> None:
    out = io.StringIO()
    # What else is wrong with this installation does not matter here.
    with suppress(SystemExit):
        call_command("doctor", "--json", stdout=out)
    (orphan,) = orphans.find()
    (found,) = [each for each in json.loads(out.getvalue())["checks"] if each["id"] == "orphans"]
    assert found["level"] == "warn" and str(unknown) in found["detail"]
    assert f"manage.py drop_index {orphan.root}" in found["fix"]
