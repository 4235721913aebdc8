"""Power is lost at any point of the work of a server: after the next start, what a client was told
to be stored is there, and nothing is answered wrong.

POWER_LOSSES=n takes more points than the few of each run of the tests.
"""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from apps.site.control.client import ask
from tests.browser.product import Product, running
from tests.damage import asking
from tests.power.recording import Recording, recorded
from tests.support import forks
from tests.support.ingested import CALLER, SAMPLE, write_files
from tests.support.served import ingest_into, until_ingested

pytestmark = pytest.mark.door

LOSSES = int(os.environ.get("POWER_LOSSES", "3"))
SEED = 35
INGESTED_AGAIN = "ingested again"
ANY_BASE = {"CODEINFO_INGEST_BASE": ""}  # the home folder, and what is added


def work(product: Product, told: Recording) -> asking.Answers:
    """Store something of each kind, and note what was told of it."""
    repository = write_files(product.repos / "lighthouse", SAMPLE)
    ingest_into(product, repository)
    told.promise("ingested")
    for number in range(2):
        asking.chat(product, f"where are retries? {number}")
        told.promise(f"where are retries? {number}")
    base = write_files(product.data.parent.with_name("elsewhere"), SAMPLE)
    token = json.loads((product.data / "server.json").read_text())["token"]
    headers, body = {"authorization": f"Bearer {token}"}, {"path": str(base)}
    done = httpx.post(f"{product.url}/ingest/bases", json=body, headers=headers, timeout=60)
    assert done.status_code == 200, done.text
    told.promise(str(base))
    write_files(repository, CALLER)
    done = httpx.post(f"{product.url}/ingest/reembed/{repository}", json={}, timeout=60)
    until_ingested(product, done.json()["runId"])
    told.promise(INGESTED_AGAIN)
    return asking.ask(product)


@pytest.mark.fault("The power is cut")
def test_what_was_told_to_be_stored_is_there_after_a_loss_of_power(tmp_path: Path) -> None:
    forks.copy_migrated(tmp_path / "backing")
    home = tmp_path / "home"
    home.mkdir()
    with (
        recorded(home / "data", tmp_path / "backing") as recording,
        running(home, **ANY_BASE) as product,
    ):
        answers = work(product, recording)
    promised = recording.promised_at()
    some = Random(SEED).choices(range(len(recording.events)), k=LOSSES)
    for folder, promises in recording.losses(sorted({*promised, *some}), SEED, tmp_path):
        with running(folder, **ANY_BASE, CODEINFO_INGEST_REPAIR="ask") as product:
            assert lost(product, promises) == [], folder
            if INGESTED_AGAIN in promises:
                assert not asking.untold(product, answers), folder
            found: Any = ask(product.data, "verify", {"source": False}, lambda message: None)
            assert [root["differences"] for root in found["roots"]] == [[] for _ in found["roots"]]


def lost(product: Product, promises: set[str]) -> list[str]:
    """What was promised and is not there."""
    with httpx.Client(base_url=product.url, timeout=60) as client:
        turns = client.get("/conversations/one/turns").json().get("items", [])
        roots = client.get("/ingest/roots").json()["roots"]
        bases = client.get("/ingest/bases").json()
    there = {turn["content"] for turn in turns}
    there |= {"ingested", INGESTED_AGAIN} if roots else set()
    return [text for text in promises if text not in there and text not in str(bases)]
