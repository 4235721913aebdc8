"""docs/api.md has every route that there is, and the parameters of a scope are documented."""

import re
from pathlib import Path

import pytest
from django.http import QueryDict
from django.test import Client

from apps.conversations import urls as conversations
from apps.conversations.consumers.json import HANDLERS
from apps.ingest import urls as ingest
from apps.mcp.narrowing import narrowed
from apps.mcp.search import SEARCH
from apps.retrieval.query import MAX_AREAS, MAX_ID, MAX_PATH
from apps.tools import urls as tools

DOCS = Path(__file__).parent.parent.parent / "docs"
DOC = (DOCS / "api.md").read_text()
FRAMES = [
    "user_turn",
    "inflight_snapshot",
    "assistant_delta",
    "analysis_delta",
    "tool_event",
    "turn_final",
    "conversation_upsert",
    "conversation_delete",
    "ingest_snapshot",
    "ingest_update",
]


def routes() -> list[str]:
    known = [
        *conversations.api_urlpatterns,
        *ingest.api_urlpatterns,
        *tools.api_urlpatterns,
    ]
    return [f"/{pattern.pattern}" for pattern in known]


def generic(path: str) -> str:
    return re.sub(r"<[^>]*>", "<>", path)


@pytest.mark.parametrize("route", routes())
def test_every_route_is_documented(route: str) -> None:
    expected = generic(route).removesuffix("bulk/<>")
    assert expected in generic(DOC), route


@pytest.mark.parametrize("word", [*HANDLERS, *FRAMES])
def test_every_message_type_of_the_websocket_is_documented(word: str) -> None:
    assert f"`{word}" in DOC


def section(document: str, heading: str) -> str:
    text = (DOCS / document).read_text()
    return text.partition(f"{heading}\n")[2].partition("\n## ")[0]


def test_the_parameters_of_a_restricted_mcp_are_documented() -> None:
    text = section("mcp.md", "### A restricted `/mcp`")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    examples = [each for row in rows for each in re.findall(r"`(\w+=[^`]+)`", row)]
    assert {each.partition("=")[0] for each in examples} == {"tool", "repository", "area", "full"}
    for each in examples:
        assert narrowed(SEARCH, QueryDict(each)) != SEARCH
    assert narrowed(SEARCH, QueryDict("other=acme")) == SEARCH
    for figure in (f"{MAX_AREAS} times", f"at most {MAX_ID} ", f"at most {MAX_PATH:,})"):
        assert figure in text


@pytest.mark.door
@pytest.mark.django_db
def test_the_parameters_of_the_chat_page_are_documented(client: Client) -> None:
    text = section("retrieval.md", "## Scope of a question")
    named = set(re.findall(r"`(\w+)=`", text))
    assert named == {"repo", "repository", "scope", "ask", "q"}
    for name in named:
        html = client.get("/chat", {name: "flask"}).content.decode()
        field = ">flask</textarea>" if name in ("ask", "q") else 'name="scope" value="flask"'
        assert field in html, name
    assert f"at most {MAX_AREAS} chips" in text
    assert f"at most {MAX_AREAS} texts" in section("api.md", "## Chat")
