"""The admin of conversations and turns: to look at, with the few verbs there are."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from apps.conversations.models import Conversation, Turn

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LIST = "/admin/conversations/conversation/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def two() -> list[Conversation]:
    rows = [
        Conversation.objects.create(id=id, provider="builtin", model="search", title=title)
        for id, title in (("c1", "Alpha"), ("c2", "Beta"))
    ]
    for row in rows:
        Turn.objects.create(
            conversation=row, role="user", parts=[{"type": "text", "text": f"about {row.title}"}]
        )
    return rows


def act(client: Client, name: str, *ids: str, **more: str) -> None:
    answer = client.post(LIST, {"action": name, "_selected_action": ids, **more})
    assert answer.status_code == 302, answer.content


def test_is_searched_and_filtered(admin_client: Client, two: list[Conversation]) -> None:
    page = admin_client.get(LIST, {"q": "alph"}).content.decode()
    assert "Alpha" in page
    assert "Beta" not in page
    assert "Alpha" not in admin_client.get(LIST, {"archived_at__isempty": "0"}).content.decode()
    turns = admin_client.get("/admin/conversations/turn/", {"q": "about Beta"}).content.decode()
    assert "about Beta" in turns
    assert "about Alpha" not in turns


def test_archives_restores_and_deletes(admin_client: Client, two: list[Conversation]) -> None:
    act(admin_client, "archive", "c1", "c2")
    assert Conversation.objects.exclude(archived_at=None).count() == 2
    act(admin_client, "restore", "c1")
    assert Conversation.objects.get(archived_at=None).pk == "c1"
    act(admin_client, "delete_selected", "c2", post="yes")
    assert [row.pk for row in Conversation.objects.all()] == ["c1"]
    assert Turn.objects.count() == 1


def test_only_the_title_can_be_changed(admin_client: Client, two: list[Conversation]) -> None:
    page = admin_client.get(f"{LIST}c1/change/").content.decode()
    assert "about Alpha" in page
    sent = {"title": "Gamma", "model": "other", "turns-TOTAL_FORMS": 0, "turns-INITIAL_FORMS": 0}
    assert admin_client.post(f"{LIST}c1/change/", sent).status_code == 302
    row = Conversation.objects.get(pk="c1")
    assert (row.title, row.model) == ("Gamma", "search")


def test_nothing_is_added_and_turns_are_read_only(
    admin_client: Client, two: list[Conversation]
) -> None:
    turn = Turn.objects.first()
    assert turn is not None
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.get("/admin/conversations/turn/add/").status_code == 403
    path = f"/admin/conversations/turn/{turn.pk}"
    assert admin_client.get(f"{path}/change/").status_code == 200
    assert admin_client.post(f"{path}/change/", {"role": "system"}).status_code == 403
    assert admin_client.post(f"{path}/delete/", {"post": "yes"}).status_code == 403
