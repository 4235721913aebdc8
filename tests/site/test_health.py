"""Health and versions, as monitors and other programs read them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import AsyncClient, Client

from apps.core import __version__
from apps.core.errors import Unavailable
from apps.index.models import IngestRun, Root
from apps.index.vectors.following import Following
from apps.ingest.worker.supervisor import supervisor
from apps.site import health
from apps.site.checks import parts
from apps.site.checks.findings import Finding
from apps.site.checks.runner import Check, CheckRunner, in_thread
from tests.house.sources import HOME

PATIENCE = 30


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from other tests, and a slow machine has its time."""
    monkeypatch.setattr(health, "runner", CheckRunner())
    monkeypatch.setattr(health, "LIMIT_SECONDS", PATIENCE)


@pytest.mark.door
@pytest.mark.django_db
def test_health_reports_every_part(client: Client) -> None:
    body = client.get("/health").json()
    assert (body["status"], body["mongoConnected"]) == ("ok", True)
    assert body["uptime"] >= 0
    assert body["timestamp"] > 1_700_000_000_000
    reported = body["parts"]
    checked = {check.id.partition(":")[0] for check in parts.all_parts()}
    # It has the unknown folders only if there are some, such as those of other tests.
    assert set(reported) | {parts.ORPHANS.id} == checked
    assert set(reported) >= {
        "database",
        "disk",
        "embedder",
        "index",
        "chroma",
        "providers",
        "worker",
    }
    assert reported["providers"]["builtin"]["state"] == "ok"
    assert reported["database"] == {"state": "ok", "word": "Connected", "detail": "SQLite"}
    assert reported["worker"]["word"] == "Not here"


@pytest.mark.fault("The database is unavailable")
@pytest.mark.django_db
def test_health_stays_200_when_the_database_is_away(client: Client) -> None:
    with patch.object(BaseDatabaseWrapper, "cursor", side_effect=OperationalError("gone")):
        answer = client.get("/health")
    assert (answer.status_code, answer.json()["mongoConnected"]) == (200, False)
    assert answer.json()["parts"]["database"]["state"] == "bad"
    assert "database" in answer.json()["degraded"]


CHROMA = [
    (Following("off"), "hybrid", "off", "Off", "CODEINFO_CHROMA is off"),
    (Following("complete", 90, 90), "hybrid", "ok", "Complete", "Chroma embedded, 90 vectors"),
    (Following("following", 1_339, 3_000), "hybrid", "ok", "44 %", "1,339 of 3,000 vectors"),
    (Following("failed", 1, 3, "The disk is full."), "hybrid", "warn", "Failed", "do not need it."),
    (Following("failed", 1, 3, "The disk is full."), "vector", "bad", "Failed", "Searches fail"),
    (Following("off"), "vector", "bad", "Off", "CODEINFO_CHROMA is off"),
]


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.django_db
@pytest.mark.parametrize(("now", "mode", "state", "word", "detail"), CHROMA)
def test_how_far_chroma_is_matters_only_where_searches_ask_it(
    client: Client,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    now: Following,
    mode: str,
    state: str,
    word: str,
    detail: str,
) -> None:
    configure(retrieval_mode=mode)
    monkeypatch.setattr(parts, "following", lambda: now)
    body = client.get("/health").json()
    chroma = body["parts"]["chroma"]
    assert (chroma["state"], chroma["word"]) == (state, word)
    assert detail in chroma["detail"] and now.reason in chroma["detail"]
    assert ("fix" in chroma) == ((now.state, mode) == ("off", "vector"))
    assert body["status"] == "ok" and body["parts"]["index"]["state"] == "ok"


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.django_db(transaction=True)
def test_a_damaged_repository_is_named_until_it_is_whole(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/health").json()["parts"]["index"]["detail"] == "0 repositories"
    root = Root(path="/code/redis", name="redis", model="m", generation=1)
    root.damage = "2 of 9 texts are missing"
    root.save()
    monkeypatch.setattr(health, "runner", CheckRunner())
    body = client.get("/health").json()
    assert body["parts"]["index"]["word"] == "Damaged" and "index" in body["degraded"]
    assert body["parts"]["index"]["detail"] == "redis: 2 of 9 texts are missing."
    assert "ingests these folders again" in body["parts"]["index"]["fix"]
    Root.objects.update(damage="")
    monkeypatch.setattr(health, "runner", CheckRunner())
    detail = client.get("/health").json()["parts"]["index"]["detail"]
    assert detail.startswith("1 repository. The index was ")


@pytest.fixture
def parts_are(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """parts_are(check, …): these and the database are all there is."""

    async def connected() -> Finding:
        return Finding("database", "Database", "ok", "Connected", "SQLite")

    def use(*checks: Check) -> None:
        every = [Check("database", "Database", connected), *checks]
        monkeypatch.setattr(parts, "all_parts", lambda: every)

    return use


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What hangs until the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.fault("A part or the event loop hangs")
async def test_a_part_that_hangs_holds_nobody_up_and_is_asked_once(
    async_client: AsyncClient,
    parts_are: Callable[..., None],
    stuck: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "LIMIT_SECONDS", 0.05)
    calls: list[str] = []

    def hang() -> Finding:
        calls.append("chroma")
        stuck.wait(PATIENCE)
        return Finding("chroma", "Chroma", "ok", "Ready", "at last")

    parts_are(Check("chroma", "Chroma", lambda: in_thread(hang)))
    for _ in range(3):
        body = (await async_client.get("/health")).json()
        assert body["parts"]["chroma"]["word"] == "No answer"
        assert body["degraded"] == ["chroma"]
        assert body["mongoConnected"] is True
    assert calls == ["chroma"]
    monkeypatch.setattr(health, "LIMIT_SECONDS", PATIENCE)
    stuck.set()
    body = (await async_client.get("/health")).json()
    assert body["parts"]["chroma"]["word"] == "Ready"


async def test_a_database_that_takes_long_to_examine_is_not_broken(
    stuck: threading.Event,
) -> None:
    def examine() -> Finding:
        stuck.wait(PATIENCE)
        return Finding("database", "Database", "ok", "Connected", "at last")

    slow = replace(parts.DATABASE_EXAMINED, ask=lambda: in_thread(examine))
    (finding,) = await CheckRunner().run([slow], 0.05)
    assert (finding.level, finding.word) == ("warn", "No answer")


async def test_a_recent_finding_is_reused(parts_are: Callable[..., None]) -> None:
    calls: list[int] = []

    async def count() -> Finding:
        calls.append(1)
        return Finding("chroma", "Chroma", "ok", "Ready", str(len(calls)))

    parts_are(Check("chroma", "Chroma", count))
    runner = CheckRunner()
    for fresh, expected in ((3600, "1"), (3600, "1"), (0, "2")):
        found = await runner.run(parts.all_parts(), PATIENCE, fresh)
        assert found[1].detail == expected


async def test_whatever_a_part_raises_is_a_finding() -> None:
    async def ask(error: Exception) -> Finding:
        def fail() -> Finding:
            raise error

        (found,) = await CheckRunner().run([Check("x", "X", lambda: in_thread(fail))], PATIENCE)
        return found

    away = await ask(Unavailable("It is away."))
    assert (away.level, away.word, away.detail) == ("bad", "Away", "It is away.")
    assert (await ask(OperationalError("gone"))).level == "warn"
    bug = await ask(KeyError("x"))
    assert (bug.level, bug.detail) == ("bad", "KeyError: 'x'")


async def test_findings_have_no_keys_and_only_origins_of_urls(
    configure: Callable[..., None],
) -> None:
    configure(openai_api_key="canary-own-key")
    text = "No http://u:canary-pw@h:1/canary/v1?k=canary. Key canary-own-key, sk-canary-0123."

    async def ask() -> Finding:
        return Finding("x", "X", "bad", "Away", text, text)

    (found,) = await CheckRunner().run([Check("x", "X", ask)], PATIENCE)
    for reported in (found.detail, found.fix):
        assert reported == "No http://h:1. Key [redacted], [redacted]."


async def test_details_are_for_those_who_may_call_the_api(
    async_client: AsyncClient, parts_are: Callable[..., None], configure: Callable[..., None]
) -> None:
    parts_are()
    configure(api_token="needed-for-more")
    stranger = (await async_client.get("/health")).json()
    assert stranger["parts"]["database"] == {"state": "ok", "word": "Connected"}
    known = {"authorization": "Bearer needed-for-more"}
    reported = (await async_client.get("/health", headers=known)).json()
    assert reported["parts"]["database"]["detail"] == "SQLite"


@pytest.mark.django_db(transaction=True)
async def test_a_lost_worker_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "state", lambda: "lost")
    assert (await parts.WORKER.ask()).level == "bad"
    monkeypatch.setattr(supervisor, "state", lambda: "ready")
    assert (await parts.WORKER.ask()).word == "Ready"
    await IngestRun.objects.acreate(path="/ships", name="ships", state="embedding")
    assert (await parts.WORKER.ask()).word == "Working"


async def test_a_result_without_a_waiting_caller_is_dropped(stuck: threading.Event) -> None:
    task = asyncio.ensure_future(in_thread(lambda: stuck.wait(PATIENCE)))
    await asyncio.sleep(0)
    task.cancel()
    stuck.set()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_versions_agree(client: Client) -> None:
    assert client.get("/version").json() == {"app": "server", "version": __version__}
    assert client.get("/info").json() == {
        "message": "Server using common package",
        "info": {"app": "server", "version": __version__},
    }
    assert 'path = "apps/core/__init__.py"' in (HOME / "pyproject.toml").read_text()
