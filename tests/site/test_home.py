"""The home page at its door."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import AsyncClient, Client
from django.utils import timezone

from apps.agents.providers.base import Availability, Model
from apps.conversations.models import Conversation, Turn
from apps.core import __version__
from apps.core.errors import Unavailable
from apps.index.models import IngestRun, Root
from apps.index.vectors.following import Following
from apps.site import health, overview, standby
from apps.site.checks import parts
from apps.site.checks.findings import Finding, Level
from tests.support.ingested import ingest, write_files

pytestmark = pytest.mark.django_db


class FakeProvider:
    """A provider that is as available as the test says."""

    id, label = "fake", "Fake server"

    def __init__(self, state: Availability, models: list[Model] | None = None) -> None:
        self.state, self._models = state, models

    async def origin(self) -> str:
        return ""

    async def availability(self) -> Availability:
        return self.state

    async def models(self) -> list[Model]:
        if self._models is None:
            raise Unavailable("The server hung up.")
        return self._models

    def stream(self, request: object) -> Any:
        raise AssertionError("the home page asks nothing")


def test_it_shows_versions_and_storage(client: Client) -> None:
    html = client.get("/").content.decode()
    assert "Client version" in html
    assert "Server version" in html
    assert __version__ in html
    assert "SQLite, 0 kept" in html
    assert "Nothing is ingested yet." in html


def test_it_says_that_the_first_folder_is_being_ingested(client: Client) -> None:
    IngestRun.objects.create(operation="start", path="/src/a", name="alpha", model="m")
    html = client.get("/").content.decode()
    assert "alpha is being ingested." in html
    assert "Nothing is ingested yet." not in html


@pytest.mark.parametrize("run", [{"operation": "remove"}, {"dry_run": True}])
def test_what_is_removed_or_only_counted_is_not_being_ingested(
    client: Client, run: dict[str, Any]
) -> None:
    IngestRun.objects.create(**{"operation": "start", "path": "/src/a", "model": "m"} | run)
    assert "Nothing is ingested yet." in client.get("/").content.decode()


def test_a_first_folder_without_a_name_has_that_of_its_path(client: Client) -> None:
    IngestRun.objects.create(operation="start", path="/src/a", model="m")
    assert ">a is being ingested." in client.get("/").content.decode()


def test_a_recent_question_has_its_time(client: Client) -> None:
    at = timezone.now() - timedelta(minutes=9)
    row = Conversation.objects.create(
        id="c1", provider="builtin", model="search", last_message_at=at
    )
    Turn.objects.create(conversation=row, role="user", parts=[{"type": "text", "text": "Which?"}])
    assert re.search("Which\\?</a>.{0,200}>9 min ago<", client.get("/").content.decode())


def test_it_lists_repositories(client: Client) -> None:
    Root.objects.create(
        path="/code/httpx",
        name="httpx",
        model="m",
        generation=1,
        chunks=1042,
        last_ingest_at=timezone.now(),
    )
    html = client.get("/").content.decode()
    assert "1,042 passages" in html
    assert "Ask about 1 repository" in html


def test_storage_shows_what_is_missing(client: Client) -> None:
    Root.objects.create(
        path="/code/httpx", name="httpx", model="m", generation=1, chunks=450,
        last_ingest_at=timezone.now(), damage="225 of 450 passages are missing",
    )  # fmt: skip
    html = client.get("/").content.decode()
    assert "450 passages (httpx: 225 of 450 passages are missing)" in html


def test_storage_shows_the_index_and_chroma_apart(
    client: Client, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    files = {"index/a.part": 2_000_000, "texts/a.texts": 500_000, "chroma/chroma.sqlite3": 100_000}
    write_files(folder, {name: "x" * size for name, size in files.items()})
    configure(data_dir=folder, chroma="follow")
    monkeypatch.setattr(overview, "following", lambda: Following("following", 1_339, 3_000))
    html = client.get("/").content.decode()
    assert "0 passages, 2.5 MB" in html and "Embedded, 1,339 vectors, 0.1 MB" in html
    configure(chroma_url="http://chroma:8000")
    assert "At http://chroma:8000, 1,339 vectors" in client.get("/").content.decode()
    configure(chroma="off")
    assert "1,339" not in client.get("/").content.decode()


def test_the_newest_conversations_are_beside_every_page(client: Client) -> None:
    assert "Recent conversations" not in client.get("/").content.decode()
    for number in range(9):
        Conversation.objects.create(id=f"c{number}", title=f"Title {number}", provider="openai")
    Conversation.objects.create(id="old", title="Put away", archived_at=timezone.now())
    for path in ("/", "/search", "/ingest"):
        html = client.get(path).content.decode()
        assert "Recent conversations" in html
        assert [n for n in range(9) if f'href="/chat?c=c{n}"' in html] == list(range(1, 9))
        assert "Put away" not in html


def test_it_lists_the_newest_questions_with_links(client: Client) -> None:
    assert "Nothing has been asked yet." in client.get("/").content.decode()
    for number in range(9):
        at = {"last_message_at": timezone.now() + timedelta(seconds=number)}
        row = Conversation.objects.create(id=f"c{number}", title="A title", provider="openai", **at)
        question = [{"type": "text", "text": f"Why <b>{number}</b>?"}]
        row.turns.create(role="user", parts=question, created_at=row.last_message_at)
    html = client.get("/").content.decode().partition('id="h-asked"')[2].partition("</section>")[0]
    asked = re.findall(r'href="/chat\?c=c(\d)">Why &lt;b&gt;(\d)&lt;/b&gt;\?</a>', html)
    assert asked == [(str(n), str(n)) for n in range(8, 2, -1)]


@pytest.mark.door
def test_repositories_have_a_bar_of_their_languages(client: Client, folder: Path) -> None:
    ingest(write_files(folder, {"a.py": "a = 1\n", "b.js": "let b = 1;\n"}), "lamps")
    html = client.get("/").content.decode()
    assert re.search(
        r"javascript <span[^>]*>65 %</span>.*python <span[^>]*>35 %</span>", html, re.S
    )


@pytest.mark.parametrize(
    ("level", "line"),
    [("bad", "Needs attention: Lamp"), ("off", "Everything that is set up works")],
)
async def test_the_parts_fold_into_one_line_that_opens_when_one_is_wrong(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch, level: Level, line: str
) -> None:
    async def thorough() -> list[Finding]:
        return [Finding("lamp", "Lamp", level, "Out", "The lamp is out.")]

    monkeypatch.setattr(health, "thorough", thorough)
    html = (await async_client.get("/ui/site/connected")).content.decode()
    assert line in html and "The lamp is out." in html
    assert bool(re.search("<details[^>]* open>", html)) == (level == "bad")


def test_it_survives_a_database_that_is_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> dict[str, str]:
        raise DatabaseError("away")

    monkeypatch.setattr(overview, "storage", away)
    html = client.get("/").content.decode()
    assert "The database does not answer." in html


async def test_each_provider_reports_why_it_cannot_be_used(configure: Callable[..., None]) -> None:
    async def finding_of(provider: FakeProvider) -> Finding:
        return await parts.provider_check(provider).ask()

    away = FakeProvider(Availability(False, reason="Set CODEINFO_FAKE."))
    check = parts.provider_check(away)
    assert (check.id, check.name) == ("providers:fake", "Fake server")
    found = await check.ask()
    assert (found.level, found.word, found.detail) == (
        "off",
        "Not available",
        "Set CODEINFO_FAKE.",
    )
    configure(chat_provider="fake")
    assert (await finding_of(away)).level == "bad"
    broken = await finding_of(FakeProvider(Availability(True)))
    assert (broken.level, broken.detail) == ("warn", "The server hung up.")
    ready = await finding_of(
        FakeProvider(Availability(True, tools_available=False), [Model("m", "M")])
    )
    assert (ready.level, ready.detail) == ("ok", "1 model, without tools")


@pytest.mark.door
async def test_the_fragment_names_every_part_in_words_of_the_reader(
    async_client: AsyncClient, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(openai_base_url="")
    monkeypatch.setattr(standby, "watchdog", SimpleNamespace(latest=None))
    response = await async_client.get("/ui/site/connected")
    html = response.content.decode()
    for name in ("Database", "Search and embedding", "Index", "Chroma", "Search only", "Server"):
        assert f"<h3>{name}</h3>" in html
    assert re.search(r"\b\d+ repositor(y|ies)\b", html)
    assert "It has responded at all times in the last hour." in html
    assert "CODEINFO_OPENAI_BASE_URL" in html


def test_the_theme_of_the_cookie_is_in_the_first_bytes(client: Client) -> None:
    client.cookies["theme"] = "dark"
    assert '<html lang="en" data-theme="dark">' in client.get("/").content.decode()
    client.cookies["theme"] = '"><script>'
    assert '<html lang="en">' in client.get("/").content.decode()


@pytest.mark.parametrize("path", ["/", "/ingest", "/login"])
def test_pages_carry_no_inline_script_or_style(client: Client, path: str) -> None:
    response = client.get(path)
    html = response.content.decode()
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    assert " style=" not in html
    assert "<style" not in html
    assert " onclick=" not in html
    assert html.count("<script") == html.count("<script src=") + html.count(
        '<script type="module" src='
    )
