"""Tags of conversations: how they are written, set, found, filtered by and exported."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.conversations import tagging
from apps.conversations.models import Conversation
from apps.core.principal import Principal, acting_as

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture(autouse=True)
def three() -> None:
    for name in ("one", "two", "three"):
        Conversation.objects.create(id=name, provider="p", model="m", title=f"Title {name}")


def tag(client: Client, conversation: str, *tags: Any) -> Any:
    path = f"/conversations/{conversation}/tags"
    return client.post(path, {"tags": tags}, content_type="application/json")


def press(client: Client, conversation: str, text: str, do: str = "add") -> Any:
    return client.post("/ui/chat/tag", {"c": conversation, "tag": text, "do": do})


def listed(client: Client, **query: str) -> list[str]:
    html = client.get("/ui/chat/sidebar", query).content.decode()
    return sorted(re.findall(r'id="convo-(\w+)"', html))


def stored(conversation: str) -> list[str]:
    return Conversation.objects.get(pk=conversation).tag_names


def test_tags_are_on_the_wire_in_one_spelling(client: Client) -> None:
    answer = tag(client, "one", "#Needs Review", "billing", "BILLING", "größe")
    assert answer.json() == {"status": "ok", "tags": ["billing", "grösse", "needs-review"]}
    items = client.get("/conversations").json()["items"]
    assert {item["conversationId"]: item["tags"] for item in items} == {
        "one": ["billing", "grösse", "needs-review"],
        "two": [],
        "three": [],
    }
    assert tag(client, "one", "# first", "##-second").json()["tags"] == ["first", "second"]
    assert tag(client, "one").json()["tags"] == []


@pytest.mark.parametrize(
    "tags",
    [["x" * 41], [" "], ["# #"], ["a\0b"], ["a\ud800"], [1], [f"t{n}" for n in range(11)], "a"],
)
def test_what_is_no_tag_is_refused_and_changes_nothing(client: Client, tags: Any) -> None:
    tag(client, "one", "before")
    body = json.dumps({"tags": tags})
    answer = client.post("/conversations/one/tags", body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert list(answer.json()["details"]) == ["tags"]
    assert stored("one") == ["before"]


def test_the_api_filters_by_a_whole_tag(client: Client) -> None:
    tag(client, "one", "bill", "x%")
    tag(client, "two", "billing")
    for query, found in (("Bill", ["one"]), ("billing", ["two"]), ("x%25", ["one"]), ("x_", [])):
        items = client.get(f"/conversations?tag={query}").json()["items"]
        assert [item["conversationId"] for item in items] == found
    assert client.get("/conversations?tag=").status_code == 400


def test_the_list_is_filtered_by_a_tag_and_its_words_are_found(client: Client) -> None:
    assert "f-tag" not in client.get("/ui/chat/sidebar").content.decode()
    tag(client, "one", "billing", "later")
    tag(client, "two", "billing")
    html = client.get("/ui/chat/sidebar", {"tag": "later"}).content.decode()
    assert '<option value="later" selected>#later</option>' in html
    assert listed(client, tag="billing") == ["one", "two"]
    assert listed(client, tag="later") == ["one"]
    assert listed(client, tag="bill") == []
    assert listed(client, q="Bill") == ["one", "two"]
    assert listed(client, q="title later") == ["one"]
    assert listed(client, tag="billing", q="two") == ["two"]
    html = client.get("/ui/chat/sidebar", {"tag": "none"}).content.decode()
    assert "No conversation here has the tag “none”." in html


def test_a_dialog_adds_and_removes_one_tag(client: Client) -> None:
    html = client.get("/ui/chat/tags?c=one").content.decode()
    assert "Tags of “Title one”" in html
    assert 'aria-label="Remove a-b"' in press(client, "one", "A b").content.decode()
    press(client, "one", "c")
    assert stored("one") == ["a-b", "c"]
    press(client, "one", "a-b", "remove")
    assert stored("one") == ["c"]
    refused = press(client, "one", "x" * 50)
    assert refused.status_code == 422
    assert "A tag has at most 40 characters." in refused.content.decode()
    for number in range(9):
        press(client, "one", f"t{number}")
    assert "at most 10 tags" in press(client, "one", "one-more").content.decode()
    assert len(stored("one")) == 10
    assert press(client, "none", "x").status_code == 404


def test_several_are_tagged_at_once_or_none(client: Client) -> None:
    tag(client, "two", *(f"t{n}" for n in range(10)))
    form = {"id": ["one", "three"], "tag": "Both", "do": "add"}
    answer = client.post("/ui/chat/bulk/tag", form)
    trigger = json.loads(answer.headers["HX-Trigger"])
    assert trigger["toast"]["text"] == "Tagged 2 conversations"
    assert (stored("one"), stored("three")) == (["both"], ["both"])
    client.post("/ui/chat/bulk/tag", form | {"do": "remove", "id": ["one", "two"]})
    assert (stored("one"), stored("three"), len(stored("two"))) == ([], ["both"], 10)
    assert client.post("/ui/chat/bulk/tag", form | {"id": ["one", "two"]}).status_code == 400
    assert client.post("/ui/chat/bulk/tag", form | {"id": ["one", "none"]}).status_code == 409
    assert stored("one") == []


def test_the_tags_of_others_are_not_suggested() -> None:
    ada = User.objects.create_user("ada")
    Conversation.objects.filter(pk="one").update(tags="\nhers\n", owner=ada)
    Conversation.objects.filter(pk="two").update(tags="\nsecret\n")
    assert tagging.known() == ["hers", "secret"]
    with acting_as(Principal("user", ada.pk)):
        assert tagging.known() == ["hers"]


def test_exports_have_the_tags(client: Client) -> None:
    export = "/ui/chat/export?c=one&format="
    assert "Tags" not in client.get(f"{export}md").content.decode()
    tag(client, "one", "b", "a")
    assert client.get(f"{export}json").json()["tags"] == ["a", "b"]
    assert "# Title one\n\nTags: a, b\n" in client.get(f"{export}md").content.decode()


def test_the_admin_shows_tags_and_filters_by_them(admin_client: Client) -> None:
    tag(admin_client, "one", "billing")
    place = "/admin/conversations/conversation/"
    assert "billing" in admin_client.get(f"{place}one/change/").content.decode()
    page = admin_client.get(f"{place}?tag=billing").content.decode()
    assert "Title one" in page and "Title two" not in page
    assert "Title two" in admin_client.get(f"{place}?tag=nothing").content.decode()
