"""The admin of conversations and turns: to look at, with the few verbs there are."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.conversations import services
from apps.conversations.models import Conversation, Share, Turn
from tests.support.chat import append

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


@pytest.fixture
def answered() -> Conversation:
    """A conversation of two questions; the answer to the second failed."""
    row = Conversation.objects.create(id="c3", provider="openai", model="m", title="Retries")
    for minute, tokens in ((1, 1_200), (2, None)):
        at = {"created_at": NOON + timedelta(minutes=minute)}
        fields = {"conversation_id": "c3", "provider": "openai", "model": "m"}
        question = [{"type": "text", "text": f"Question {minute}?"}]
        append(**fields, **at, role="user", parts=question)
        append(
            **fields,
            created_at=at["created_at"] + timedelta(seconds=1),
            role="assistant",
            parts=[{"type": "text", "text": f"It **doubles**, {minute} times."}],
            usage={"totalTokens": tokens} if tokens else {"inputTokens": 3},
            status="ok" if tokens else "failed",
            error=None if tokens else {"code": "AWAY", "message": "The server fell over."},
        )
    return row


def act(client: Client, name: str, *ids: str, **more: str) -> None:
    answer = client.post(LIST, {"action": name, "_selected_action": ids, **more})
    assert answer.status_code == 302, answer.content


def test_dates_are_written_as_on_the_other_pages(
    admin_client: Client, answered: Conversation
) -> None:
    page = admin_client.get("/admin/conversations/turn/").content.decode()
    assert "31 Jan 2026, 12:01" in page
    assert "31 January" in page and "p.m." not in page


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


def rows_of(page: str) -> list[str]:
    """The text of each row of a list."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.DOTALL)
    return [re.sub(r"<[^>]*>", " ", row) for row in rows]


def test_a_list_counts_turns_and_tokens_in_one_query(
    admin_client: Client, two: list[Conversation], answered: Conversation
) -> None:
    with CaptureQueriesContext(connection) as three:
        row = next(
            text for text in rows_of(admin_client.get(LIST).content.decode()) if "Retr" in text
        )
    assert row.split()[:3] == ["Retries", "4", "1,200"]
    Conversation.objects.exclude(pk="c3").delete()
    with CaptureQueriesContext(connection) as one:
        admin_client.get(LIST)
    assert len(three) == len(one)


def test_a_conversation_is_read_as_a_transcript(
    admin_client: Client, answered: Conversation
) -> None:
    page = admin_client.get(f"{LIST}c3/change/").content.decode()
    texts = ["Question 1?", "It <strong>doubles</strong>, 1 times.", "Question 2?", "fell over."]
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert 'href="/chat?c=c3"' in page


def test_the_transcript_is_of_the_branch_that_is_followed(
    admin_client: Client, answered: Conversation
) -> None:
    first = Turn.objects.get(parent=None)
    Turn.objects.create(
        conversation=answered,
        parent=first.pk,
        role="assistant",
        parts=[{"type": "text", "text": "It triples."}],
    )
    page = admin_client.get(f"{LIST}c3/change/").content.decode()
    assert "It triples." not in page
    assert "1 more turn on other branches" in page
    listed = admin_client.get(re.findall(r'href="([^"]+)">list of turns', page)[0])
    assert len(rows_of(listed.content.decode())) == 5


def test_staff_that_may_not_see_turns_reads_no_transcript(
    client: Client, answered: Conversation
) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_conversation"))
    client.force_login(clerk)
    page = client.get(f"{LIST}c3/change/").content.decode()
    assert "Retries" in page and "Question 1?" not in page


def test_a_refusal_is_a_message_in_the_list(
    admin_client: Client, two: list[Conversation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_BATCH", 1)
    data = {"action": "archive", "_selected_action": ["c1", "c2"]}
    answer = admin_client.post(LIST, data, follow=True)
    assert [str(message) for message in answer.context["messages"]] == [
        "VALIDATION_FAILED: At most 1 conversations at once."
    ]


def test_the_newest_turn_is_listed_first_under_the_title_of_its_conversation(
    admin_client: Client, answered: Conversation
) -> None:
    page = admin_client.get("/admin/conversations/turn/").content.decode()
    rows = rows_of(page)
    assert "2 times" in rows[0] and "Question 1?" in rows[-1]
    assert all("Retries" in row for row in rows)
    turn = Turn.objects.filter(status="failed").get()
    one = admin_client.get(f"/admin/conversations/turn/{turn.pk}/change/").content.decode()
    assert "The server fell over." in one and 'href="/chat?c=c3"' in one


def test_what_a_model_wrote_is_no_markup_of_the_admin(
    admin_client: Client, answered: Conversation
) -> None:
    text = [{"type": "text", "text": "<script>alert(1)</script> <b>bold</b>"}]
    Turn.objects.update(parts=text)
    page = admin_client.get(f"{LIST}c3/change/").content.decode()
    assert "<script>alert" not in page and "<b>bold" not in page


def test_links_are_listed_without_their_copies_and_revoked(
    admin_client: Client, two: list[Conversation]
) -> None:
    for row in two:
        Share.objects.create(
            token_hash=row.pk, conversation=row, title=row.title, html="copied", expires_at=NOON
        )
    path = "/admin/conversations/share/"
    with CaptureQueriesContext(connection) as queries:
        page = admin_client.get(path).content.decode()
    assert "Alpha" in page and "/admin/conversations/conversation/c1/change/" in page
    assert not [query for query in queries if '"html"' in query["sql"]]
    assert "copied" not in admin_client.get(f"{path}c1/change/").content.decode()
    assert admin_client.post(f"{path}c1/change/", {"title": "x"}).status_code == 403
    form = {"action": "delete_selected", "_selected_action": "c1", "post": "yes"}
    admin_client.post(path, form)
    assert [row.pk for row in Share.objects.all()] == ["c2"]
    assert Conversation.objects.count() == 2
