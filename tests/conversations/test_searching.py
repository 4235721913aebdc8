"""The list of conversations: full text, repositories, pins, and the open one."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from apps.conversations import rows, searching, services
from apps.conversations.models import Conversation, now_ms
from apps.conversations.sidebar import SidebarQuery, context
from apps.conversations.types import Outcome, StartTurn
from apps.core.principal import Principal, acting_as
from apps.index.types import Area

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def said(conversation_id: str, question: str, answer: str = "", **changes: Any) -> None:
    """A question, and an answer whose tools found `found`, a list of repositories."""
    found = changes.pop("found", [])
    fields: dict[str, Any] = {"provider": "builtin", "model": "search", "title": conversation_id}
    started = rows.start_turn(
        StartTurn(conversation_id=conversation_id, message=question, **fields | changes), "me"
    )
    tool = {
        "type": "tool",
        "callId": "1",
        "name": "VectorSearch",
        "parameters": {"query": "x"},
        "stage": "success",
        "result": {"results": [{"repo": name, "relPath": "a.py"} for name in found]},
        "error": None,
        "seconds": 0.1,
    }
    parts: list[dict[str, Any]] = [tool, {"type": "text", "text": answer}]
    rows.finish_turn(conversation_id, str(started.answer.pk), Outcome(status="ok", parts=parts))


def listed(client: Client, **query: str) -> list[str]:
    html = client.get("/ui/chat/sidebar", query).content.decode()
    return re.findall(r'id="convo-(\w+)"', html)


def test_words_are_found_in_titles_questions_and_answers(client: Client) -> None:
    said("one", "How are RETRIES counted?", "The backoff doubles, up to a minute.")
    said("two", "Where are ships stored?", "In the harbour.")
    services.rename("two", "The Backoff of ships")
    assert listed(client, q="Backoff") == ["two", "one"]
    assert listed(client, q="retries minute") == ["one"]
    assert listed(client, q="ships backoff") == ["two"]
    assert listed(client, q="ships minute") == []
    assert listed(client, q="100%") == []


def test_the_list_shows_where_the_words_are(client: Client) -> None:
    said("one", "Why?", "First <b>words</b>. " + "More of it. " * 20 + "The backoff doubles.")
    html = client.get("/ui/chat/sidebar", {"q": "BACKOFF"}).content.decode()
    assert "<mark>backoff</mark> doubles." in html
    services.rename("one", "Backoff & more")
    html = client.get("/ui/chat/sidebar", {"q": "backoff"}).content.decode()
    assert "<mark>Backoff</mark> &amp; more" in html
    assert "convo__found" not in html


def test_the_queries_of_the_list_do_not_grow_with_it(client: Client) -> None:
    counts = []
    for number in (2, 12):
        for n in range(number):
            said(f"c{number}x{n}", "Why?", f"The backoff doubles {n} times.")
        with CaptureQueriesContext(connection) as queries:
            html = client.get("/ui/chat/sidebar", {"q": "backoff why nothing times"}).content
            assert b"<mark>" not in html
            html = client.get("/ui/chat/sidebar", {"q": "backoff why times"}).content
        counts.append(len(queries))
    assert html.count(b"<mark>backoff</mark> doubles") == 14
    assert counts[0] == counts[1] <= 14


def test_the_first_message_with_a_word_that_the_title_lacks_is_shown(client: Client) -> None:
    said("one", "Why the backoff?", "It doubles. The minute is the most.")
    said("one", "And the backoff of a minute?", "No.")
    services.rename("one", "Backoff")
    rows_found = list(Conversation.objects.all())
    # The title has the first word.
    assert searching.snippets(rows_found, "backoff minute")["one"].words == "minute"
    assert searching.snippets(rows_found, "backoff minute")["one"].before.endswith("The ")
    assert searching.snippets(rows_found, "nothing") == searching.snippets(rows_found, "") == {}


def test_case_does_not_matter_in_other_alphabets(client: Client) -> None:
    said("one", "Wo ist die GRÖSSE der Straße?")
    for word in ("größe", "GRÖSSE", "strasse", "Straße"):
        assert listed(client, q=word) == ["one"]


def test_a_turn_that_a_client_adds_is_found_too(client: Client) -> None:
    made = services.create(provider="builtin", model="search")
    body = {
        "role": "user",
        "content": "About lighthouses",
        "status": "ok",
        "provider": "builtin",
        "model": "search",
    }
    path = f"/conversations/{made.id}/turns"
    assert client.post(path, body, content_type="application/json").status_code == 201
    html = client.get("/ui/chat/sidebar", {"q": "lighthouse"}).content.decode()
    assert made.id in html


def test_conversations_of_others_are_not_found() -> None:
    said("one", "The secret word")
    ada = get_user_model().objects.create_user("ada")
    query = SidebarQuery(text="secret")
    with acting_as(Principal("user", ada.pk)):
        assert context(query)["none"]
        said("hers", "Her secret word")
        shown = [line.row.id for _, lines in context(query)["days"] for line in lines]
    assert shown == ["hers"]


def test_a_repository_is_what_was_asked_about_or_found_in(client: Client) -> None:
    said("one", "Why?", "So.", areas=(Area("flask"),))
    said("two", "Why?", "So.", found=["django", "flask-login"])
    said("three", "Why?", "So.", found=["flask", "django"])
    assert listed(client, repo="flask") == ["three", "one"]
    assert listed(client, repo="django") == ["three", "two"]
    assert listed(client, repo="flask", q="nowhere") == []
    html = client.get("/ui/chat/sidebar", {"repo": "none"}).content.decode()
    assert "No conversation here is about none." in html


def test_pinned_conversations_come_first(client: Client) -> None:
    for name in ("one", "two", "three"):
        said(name, "Why?")
    assert client.post("/ui/chat/pin", {"c": "one", "pinned": "1"}).status_code == 204
    assert listed(client) == ["one", "three", "two"]
    html = client.get("/ui/chat/sidebar").content.decode()
    assert html.index("Pinned</div>") < html.index("convo-one") < html.index("Today</div>")
    assert "Unpin" in client.get("/ui/chat/actions?c=one").content.decode()
    client.post("/ui/chat/pin", {"c": "one", "pinned": "0"})
    assert listed(client) == ["three", "two", "one"]
    assert client.post("/ui/chat/pin", {"c": "none", "pinned": "1"}).status_code == 404


def test_the_open_conversation_is_listed_however_old_it_is(client: Client) -> None:
    now = now_ms()
    Conversation.objects.bulk_create(
        Conversation(id=f"n{n}", provider="p", model="m", last_message_at=now - timedelta(hours=n))
        for n in range(70)
    )
    assert len(listed(client)) == 20
    assert listed(client, c="n45")[-1] == "n59"
    assert len(listed(client, c="n3")) == 20
    services.pin("n69")
    assert len(listed(client, c="n69")) == 20
    page = client.get("/chat?c=n45").content.decode()
    assert re.search(r'id="convo-n45"[^>]*aria-current="page"', page)


@given(st.text(max_size=80), st.text(max_size=20))
def test_marks_change_no_title(title: str, text: str) -> None:
    parts = searching.title_parts(title, text)
    assert "".join(part for part, _ in parts) == title
