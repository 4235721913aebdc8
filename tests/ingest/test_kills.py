"""A hundred kill -9 in a row, at every kind of moment: parts, texts and rows always agree."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from apps.index import queries
from apps.index.models import Root
from tests.support.ingested import ingest_alone, write_files

pytestmark = pytest.mark.kill

HOME = Path(__file__).resolve().parents[2]
KILLS = 100
# Its moments are those of the other test; what it adds is that the store is shared.
KILLS_BESIDE = 60
MAIN = """
import sys
from pathlib import Path
import django
django.setup()
from tests.ingest import killing
killing.main(Path(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:]))
"""


def killed(kills: int, repo: Path, *others: Path) -> None:
    """Ingest a folder in lives that are cut short (`killing.main`)."""
    environ = os.environ | {
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "INGEST_FLUSH_EVERY": "1",
        "LOG_LEVEL": "error",
    }
    command = [sys.executable, "-c", MAIN, str(repo), str(kills), *map(str, others)]
    done = subprocess.run(
        command, cwd=HOME, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    steps, deaths = map(int, done.stdout.split())
    assert steps > kills
    # A run that has less to do than the first may be over before its end comes.
    assert deaths >= kills * 0.8


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
def test_kills_lose_nothing_of_a_root_that_shares_the_store(folder: Path, index: None) -> None:
    repo, sibling = folder / "notes", folder / "sibling"
    for each in (repo, sibling):
        each.mkdir()
    killed(KILLS_BESIDE, repo, sibling)
    assert {root.store for root in Root.objects.all()} == {queries.find_root(str(sibling)).store}


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
def test_after_each_of_a_hundred_kills_parts_texts_and_rows_agree(
    client: Client, folder: Path, index: None, contents: Callable[[Root], dict[str, str]]
) -> None:
    repo = folder / "notes"
    repo.mkdir()
    killed(KILLS, repo)
    root = queries.find_root(str(repo))
    files = {file.name: file.read_bytes() for file in repo.iterdir()}
    clean = ingest_alone(write_files(folder / "clean", files))
    assert contents(root) == contents(clean)
    name = min(files)
    question = {"query": files[name].decode(), "repository": root.name}
    answer = client.post("/tools/vector-search", question, content_type="application/json").json()
    assert answer["results"][0]["relPath"] == name
