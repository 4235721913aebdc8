"""Answers are rated, over the API and by the buttons of the page."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Conversation, Turn
from tests.support.chat import append

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FIELDS = {"conversation_id": "c1", "provider": "openai", "model": "m"}
NO_TURN = "00000000-0000-4000-8000-000000000009"


@pytest.fixture
def answer() -> Turn:
    Conversation.objects.create(id="c1", provider="openai", model="m", title="Why?")
    append(**FIELDS, role="user", parts=[{"type": "text", "text": "Why?"}])
    return append(**FIELDS, role="assistant", parts=[{"type": "text", "text": "So."}])


def rate(client: Client, turn: object, rating: Any) -> Any:
    path = f"/conversations/c1/turns/{turn}/rating"
    return client.post(path, {"rating": rating}, content_type="application/json")


def wire(client: Client) -> list[Any]:
    items = client.get("/conversations/c1/turns").json()["items"]
    return [item.get("rating", "absent") for item in items]


def test_a_rating_is_stored_with_the_answer_and_withdrawn(client: Client, answer: Turn) -> None:
    assert wire(client) == ["absent", "absent"]
    assert rate(client, answer.pk, 1).json() == {"status": "ok"}
    assert wire(client) == [1, "absent"]
    assert client.get("/conversations/c1/turns?limit=5").json()["items"][0]["rating"] == 1
    rate(client, answer.pk, -1)
    assert wire(client) == [-1, "absent"]
    rate(client, answer.pk, None)
    assert wire(client) == ["absent", "absent"]


@pytest.mark.parametrize("rating", [0, 2, True, "1", 1.5, [], {}])
def test_other_ratings_are_refused(client: Client, answer: Turn, rating: Any) -> None:
    refused = rate(client, answer.pk, rating)
    assert refused.status_code == 400
    assert refused.json() == {
        "error": "validation_error",
        "details": {"rating": ["Must be 1, -1 or null."]},
    }


def test_only_a_finished_answer_is_rated(client: Client, answer: Turn) -> None:
    for turn in (answer.parent, NO_TURN, "no-uuid"):
        assert rate(client, turn, 1).status_code == 404
    Turn.objects.filter(pk=answer.pk).update(status="running")
    assert rate(client, answer.pk, 1).status_code == 404
    form = {"c": "c1", "turn": str(answer.pk), "rating": "1"}
    assert client.post("/ui/chat/rate", form).status_code == 404
    assert not Turn.objects.exclude(rating=None).exists()


def test_the_buttons_say_what_is_chosen_and_a_second_press_withdraws_it(
    client: Client, answer: Turn
) -> None:
    form = {"c": "c1", "turn": str(answer.pk)}
    for rating, pressed in (
        ("1", ["true", "false"]),
        ("-1", ["false", "true"]),
        ("", ["false"] * 2),
    ):
        html = client.post("/ui/chat/rate", form | {"rating": rating}).content.decode()
        assert re.findall(r'aria-pressed="(\w+)"', html) == pressed
    assert client.post("/ui/chat/rate", form | {"rating": "5"}).status_code == 400


def test_the_page_and_the_exports_have_the_rating(client: Client, answer: Turn) -> None:
    export = "/ui/chat/export?c=c1&format="
    assert "rating" not in client.get(f"{export}json").json()["turns"][0]
    assert "Rating" not in client.get(f"{export}md").content.decode()
    rate(client, answer.pk, -1)
    page = client.get("/chat?c=c1", headers={"accept": "text/html"}).content.decode()
    assert page.count('aria-pressed="true" aria-label="Bad answer"') == 1
    assert 'aria-pressed="true" aria-label="Good answer"' not in page
    assert client.get(f"{export}json").json()["turns"][0]["rating"] == -1
    assert "So.\n\nRating: Bad answer\n" in client.get(f"{export}md").content.decode()


def test_each_version_of_an_answer_has_its_own_rating(client: Client, answer: Turn) -> None:
    rate(client, answer.pk, 1)
    other = Turn.objects.create(
        **FIELDS, parent=answer.parent, role="assistant", parts=answer.parts
    )
    Conversation.objects.update(head=other.pk)
    assert wire(client) == ["absent", "absent"]
    client.post("/ui/chat/branch", {"c": "c1", "turn": str(answer.pk)})
    assert wire(client) == [1, "absent"]


def test_the_admin_shows_ratings_and_filters_by_them(admin_client: Client, answer: Turn) -> None:
    rate(admin_client, answer.pk, -1)
    place = "/admin/conversations"
    assert "Bad answer" in admin_client.get(f"{place}/conversation/c1/change/").content.decode()
    lists = ((f"{place}/conversation/?rating", "Why?"), (f"{place}/turn/?rating__exact", "So."))
    for path, text in lists:
        assert text in admin_client.get(f"{path}=-1").content.decode()
        assert text not in admin_client.get(f"{path}=1").content.decode()
    # No value of the filter
    assert "Why?" in admin_client.get(f"{place}/conversation/?rating=x").content.decode()
