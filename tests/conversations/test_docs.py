"""docs/api.md has every route that there is."""

import re
from pathlib import Path

import pytest

from apps.conversations import urls as conversations
from apps.conversations.consumers.json import HANDLERS
from apps.ingest import urls as ingest
from apps.retrieval import urls as retrieval

DOC = (Path(__file__).parent.parent.parent / "docs" / "api.md").read_text()
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
    tools = [one for one in retrieval.urlpatterns if str(one.pattern).startswith("tools/")]
    known = [*conversations.api_urlpatterns, *ingest.api_urlpatterns, *tools]
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
