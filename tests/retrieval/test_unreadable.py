"""Passages that rank and cannot be read: every door says how many, and of which repository."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import AsyncClient, Client

from apps.core.config import config
from apps.index.texts import get_texts
from tests.retrieval.conftest import Ask
from tests.support.chat import nothing_left_running
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

__all__ = ["fill_chroma", "nothing_left_running"]
LOST = "the text of 1 passage is missing: lighthouse"
BOTH = "application/json, text/event-stream"


@pytest.fixture
def lost(folder: Path) -> None:
    """A repository of which one text is neither in the text store nor on the disk."""
    readable = ingest(
        write_files(folder / "harbour", {"h.py": "def berth(ship):\n    return ship\n"})
    )
    source = write_files(
        folder / "lighthouse", {"src/beam.py": "def rotate_beam(lamp):\n    return lamp\n"}
    )
    ingest(source, "lighthouse")
    get_texts().close()
    shutil.rmtree(config().data_dir / "texts")
    shutil.rmtree(source)
    assert readable.name == "harbour"


def mcp(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    call = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"accept": BOTH, "mcp-protocol-version": "2025-06-18"}
    response = client.post("/mcp", body, content_type="application/json", headers=headers)
    result: dict[str, Any] = response.json()["result"]["structuredContent"]
    return result


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_search_says_what_it_could_not_read(
    lost: None,
    ask: Ask,
    configure: Callable[..., None],
    fill_chroma: Callable[[], None],
    mode: str,
) -> None:
    fill_chroma()
    configure(retrieval_mode=mode)
    answer = ask(query="rotate_beam")
    assert answer["degraded"] == LOST
    assert [result["relPath"] for result in answer["results"]] == ["h.py"]
    alone = ask(query="rotate_beam", repository="lighthouse")
    assert (alone["results"], alone["degraded"]) == ([], LOST)
    assert "degraded" not in ask(query="rotate_beam", repository="harbour")


def test_context_says_what_it_could_not_read(lost: None, client: Client) -> None:
    body = {"question": "how is the beam rotated", "repository": "lighthouse"}
    answer = client.post("/tools/context", body, content_type="application/json").json()
    assert (answer["results"], answer["degraded"]) == ([], LOST)


def test_a_client_of_mcp_is_told_what_could_not_be_read(lost: None, client: Client) -> None:
    assert mcp(client, "VectorSearch", query="rotate_beam")["degraded"] == LOST
    assert mcp(client, "Context", question="rotate_beam")["degraded"] == LOST


@pytest.mark.usefixtures("nothing_left_running")
async def test_an_answer_without_a_model_says_what_could_not_be_read(
    lost: None, async_client: AsyncClient
) -> None:
    body = {"provider": "builtin", "model": "search", "conversationId": "c1"}
    body |= {"message": "rotate_beam", "scope": ["lighthouse"]}
    headers = {"accept": "text/event-stream"}
    answer: Any = await async_client.post(
        "/chat", body, content_type="application/json", headers=headers
    )
    content = b"".join([chunk async for chunk in answer.streaming_content]).decode()
    events = [json.loads(line[6:]) for line in content.split("\n") if line.startswith("data: ")]
    (final,) = [event for event in events if event["type"] == "final"]
    assert LOST in final["message"]["content"]
    assert "No passage matches" not in final["message"]["content"]


@pytest.mark.parametrize("query", ["rotate beam", "rotate AND beam"])
def test_the_search_page_says_what_could_not_be_read(
    lost: None, client: Client, query: str
) -> None:
    html = client.get("/search", {"q": query, "repository": "lighthouse"}).content.decode()
    assert LOST in html


def test_what_a_new_ingest_has_replaced_was_not_lost(
    folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_files(
        folder / "lighthouse", {"beam.py": "def rotate_beam(lamp):\n    return lamp\n"}
    )
    ingest(source, "lighthouse")
    monkeypatch.setattr("apps.retrieval.results.read_chunks", republishing(source))
    assert "degraded" not in ask(query="rotate_beam")


def republishing(source: Path) -> Callable[..., Any]:
    """`read_chunks`, after an ingest that removes what was ranked."""

    def read(asked: Any) -> Any:
        write_files(source, {"beam.py": "LAMPS = 4\n"})
        ingest(source, "lighthouse")
        return {}

    return read
