"""`/conversations`: every shape, refusal and edge of docs/contract.md §1.2, through HTTP."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from apps.conversations import queries
from apps.conversations.models import Conversation, Turn
from apps.core.values.times import wire_time
from tests.support.chat import append

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def make(id: str, at: datetime = NOON, **fields: Any) -> Conversation:
    defaults = {"provider": "builtin", "model": "search", "last_message_at": at}
    return Conversation.objects.create(id=id, **{**defaults, **fields})


def say(conversation: str, text: str, at: datetime, **fields: Any) -> Turn:
    defaults: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "text": text}]}
    defaults |= {"provider": "builtin", "model": "search", "created_at": at}
    return append(conversation_id=conversation, **{**defaults, **fields})


def post(client: Client, path: str, body: Any = None) -> Any:
    if body is None:
        return client.generic("POST", path)
    raw = body if isinstance(body, str) else json.dumps(body)
    return client.post(path, raw, content_type="application/json")


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [item["conversationId"] for item in answer.json()["items"]]


def pages(client: Client, path: str) -> Iterator[list[dict[str, Any]]]:
    cursor = ""
    while True:
        answer = client.get(f"{path}{cursor}").json()
        yield answer["items"]
        if "nextCursor" not in answer:
            return
        cursor = f"&cursor={answer['nextCursor']}"


@pytest.mark.django_db
class TestList:
    def test_an_item_has_the_contracts_fields(self, client: Client) -> None:
        make("c1", title="Tïtle ✨", flags={"threadId": "t"})
        (item,) = client.get("/conversations").json()["items"]
        assert item == {
            "conversationId": "c1",
            "provider": "builtin",
            "model": "search",
            "title": "Tïtle ✨",
            "source": "REST",
            "lastMessageAt": "2026-01-31T12:00:00.000Z",
            "archived": False,
            "flags": {"threadId": "t"},
            "tags": [],
            "createdAt": item["createdAt"],
            "updatedAt": item["updatedAt"],
        }

    def test_is_newest_first_then_by_id(self, client: Client) -> None:
        make("a")
        make("b")
        make("old", NOON - timedelta(milliseconds=1))
        assert ids(client.get("/conversations")) == ["b", "a", "old"]

    def test_pages_of_any_size_skip_and_double_nothing_though_times_tie(
        self, client: Client
    ) -> None:
        for number in range(7):
            make(f"c{number}", NOON + timedelta(seconds=number // 3))
        expected = ids(client.get("/conversations"))
        for limit in range(1, 8):
            found = [i for page in pages(client, f"/conversations?limit={limit}") for i in page]
            assert [item["conversationId"] for item in found] == expected

    def test_times_finer_than_a_millisecond_are_not_skipped(self, client: Client) -> None:
        for number in range(4):
            make(f"c{number}", NOON + timedelta(microseconds=100 * number))
        found = [i["conversationId"] for p in pages(client, "/conversations?limit=1") for i in p]
        assert found == ["c3", "c2", "c1", "c0"]

    def test_the_cursor_is_the_last_time_and_any_utc_time_is_one(self, client: Client) -> None:
        make("new", NOON + timedelta(seconds=1))
        make("old", NOON)
        answer = client.get("/conversations?limit=1").json()
        assert answer["nextCursor"] == "2026-01-31T12:00:01.000Z"
        assert ids(client.get("/conversations?cursor=2026-01-31T12:00:01Z")) == ["old"]
        assert "nextCursor" not in client.get("/conversations?limit=3").json()

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", ["live"]),
            ("state=active", ["live"]),
            ("state=ARCHIVED", ["gone"]),
            ("state=all", ["live", "gone"]),
            ("archived=true", ["live", "gone"]),
            ("archived=false", ["live"]),
            ("archived=true&state=active", ["live"]),
            ("state=all&agentName=coder", ["gone"]),
            ("state=all&agentName=__none__", ["live"]),
            ("limit=1.0", ["live"]),
            ("limit=0", ["live"]),
            ("limit=9999", ["live"]),
        ],
    )
    def test_filters(self, client: Client, query: str, found: list[str]) -> None:
        make("live", NOON)
        make("gone", NOON - timedelta(1), archived_at=NOON, agent_name="coder")
        assert ids(client.get(f"/conversations?{query}")) == found

    @pytest.mark.fault("Malformed requests")
    @pytest.mark.parametrize(
        "query",
        [
            "colour=red",
            "agentName=%00",
            "limit=many",
            "limit=true",
            "limit=1.5",
            "limit=",
            "limit=1&limit=2",
            "limit=" + "9" * 5000,
            "archived=yes",
            "cursor=yesterday",
            "cursor=2026-01-31T12:00:00%2B00:00",
            "cursor=2026-13-31T12:00:00Z",
            "cursor=2026-01-31T12:00:00",
        ],
    )
    def test_a_query_that_cannot_be_right_is_refused(self, client: Client, query: str) -> None:
        answer = client.get(f"/conversations?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_error"
        assert query.split("=")[0] in answer.json()["details"]

    def test_an_invalid_state_has_a_different_envelope(self, client: Client) -> None:
        answer = client.get("/conversations?state=asleep")
        assert answer.status_code == 400
        assert answer.json()["status"] == "error"
        assert answer.json()["code"] == "VALIDATION_FAILED"

    def test_a_locked_database_is_503_with_retry_after(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def locked(**_: Any) -> None:
            raise OperationalError("database is locked")

        monkeypatch.setattr(queries, "conversations", locked)
        answer = client.get("/conversations")
        assert answer.status_code == 503
        assert answer["Retry-After"]
        assert answer.json()["code"] == "DATABASE_UNAVAILABLE"


@pytest.mark.django_db
class TestCreate:
    def test_creates_an_empty_conversation_with_a_uuid(self, client: Client) -> None:
        answer = post(client, "/conversations", {"provider": "codex", "model": "m"})
        assert answer.status_code == 201
        made = Conversation.objects.get(pk=answer.json()["conversationId"])
        assert (made.title, made.source, made.flags) == ("Untitled conversation", "REST", {})

    def test_stores_all_fields(self, client: Client) -> None:
        body = {"provider": "openai", "model": "m", "title": " é ", "source": "MCP"}
        answer = post(client, "/conversations", {**body, "flags": {"a": [1, {"b": None}]}})
        made = Conversation.objects.get(pk=answer.json()["conversationId"])
        assert (made.title, made.source, made.flags) == (" é ", "MCP", {"a": [1, {"b": None}]})

    @pytest.mark.parametrize(
        "change",
        [
            {"provider": "parrot"},
            {"provider": 1},
            {"provider": None},
            {"model": ""},
            {"model": 5},
            {"model": True},
            {"model": "m" * 256},
            {"title": ["t"]},
            {"title": "nul\x00"},
            {"title": "half \ud83d"},
            {"flags": []},
            {"flags": {"a": "\ud83d"}},
            {"flags": None},
            {"source": "SMS"},
            {"colour": "red"},
        ],
    )
    def test_refuses_invalid_values(self, client: Client, change: dict[str, Any]) -> None:
        body = {"provider": "openai", "model": "m", **change}
        answer = post(client, "/conversations", body)
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_error"
        assert list(answer.json()["details"]) == list(change)
        assert not Conversation.objects.exists()

    @pytest.mark.fault("Malformed requests")
    @pytest.mark.parametrize("raw", ["", "{", "[]", '"x"', "null", "[" * 100_000, '{"a":NaN}'])
    def test_refuses_what_is_no_object(self, client: Client, raw: str) -> None:
        answer = client.post("/conversations", raw, content_type="application/json")
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_error"

    def test_refuses_another_content_type_and_a_huge_body(self, client: Client) -> None:
        assert client.post("/conversations", "{}", content_type="text/plain").status_code == 415
        huge = json.dumps({"model": "m" * (1 << 20)})
        assert post(client, "/conversations", huge).status_code == 413


@pytest.mark.django_db
class TestArchive:
    def test_archive_and_restore_are_idempotent(self, client: Client) -> None:
        make("c1")
        for verb, archived in (("archive", True), ("archive", True), ("restore", False)) * 2:
            answer = post(client, f"/conversations/c1/{verb}")
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
            assert Conversation.objects.get().archived is archived

    @pytest.mark.fault("A question is refused")
    @pytest.mark.parametrize("verb", ["archive", "restore", "turns"])
    @pytest.mark.parametrize("id", ["nobody", "%00", "%F0%9F%98%80", "x" * 300])
    def test_an_unknown_conversation_is_404(self, client: Client, verb: str, id: str) -> None:
        body = {"role": "user", "content": "x", "model": "m", "provider": "openai", "status": "ok"}
        answer = post(client, f"/conversations/{id}/{verb}", body)
        assert (answer.status_code, answer.json()) == (404, {"error": "not_found"})
        assert client.get(f"/conversations/{id}/turns").json() == {"error": "not_found"}

    def test_other_methods_are_405_in_json(self, client: Client) -> None:
        answer = client.get("/conversations/c1/archive")
        assert answer.status_code == 405
        assert answer["Content-Type"] == "application/json"


@pytest.mark.django_db
class TestBulk:
    def test_all_are_archived_restored_deleted_and_counted_as_matched(self, client: Client) -> None:
        make("a")
        make("b", archived_at=NOON)
        say("a", "hello", NOON)
        body = {"conversationIds": ["a", "b", "a"]}
        answer = post(client, "/conversations/bulk/archive", body)
        assert answer.json() == {"status": "ok", "updatedCount": 2}
        assert Conversation.objects.get(pk="b").archived_at == NOON
        assert post(client, "/conversations/bulk/restore", body).json()["updatedCount"] == 2
        post(client, "/conversations/bulk/archive", body)
        answer = post(client, "/conversations/bulk/delete", body)
        assert answer.json() == {"status": "ok", "deletedCount": 2}
        assert not Conversation.objects.exists()
        assert not Turn.objects.exists()

    @pytest.mark.parametrize("verb", ["archive", "restore", "delete"])
    def test_one_unknown_id_means_none(self, client: Client, verb: str) -> None:
        make("a", archived_at=None if verb == "archive" else NOON)
        before = list(Conversation.objects.values())
        answer = post(
            client, f"/conversations/bulk/{verb}", {"conversationIds": ["a", "x", "\x00"]}
        )
        assert answer.status_code == 409
        assert answer.json() == {
            "status": "error",
            "code": "BATCH_CONFLICT",
            "message": "Bulk operation rejected.",
            "details": {"invalidIds": ["x", "\x00"], "invalidStateIds": []},
        }
        assert list(Conversation.objects.values()) == before

    def test_only_the_archived_are_deleted(self, client: Client) -> None:
        make("a", archived_at=NOON)
        make("b")
        answer = post(client, "/conversations/bulk/delete", {"conversationIds": ["a", "b"]})
        assert answer.status_code == 409
        assert answer.json()["details"] == {"invalidIds": [], "invalidStateIds": ["b"]}
        assert Conversation.objects.count() == 2

    @pytest.mark.parametrize(
        "body",
        [
            {},
            [],
            "{",
            {"conversationIds": []},
            {"conversationIds": "a"},
            {"conversationIds": ["a", ""]},
            {"conversationIds": ["a", 1]},
            {"conversationIds": ["a"], "colour": "red"},
        ],
    )
    def test_anything_but_a_list_of_strings_is_refused(self, client: Client, body: Any) -> None:
        make("a")
        answer = post(client, "/conversations/bulk/archive", body)
        assert answer.status_code == 400
        assert answer.json() == {
            "status": "error",
            "code": "VALIDATION_FAILED",
            "message": "conversationIds must be a non-empty array of strings.",
        }

    def test_a_thousand_at_once_and_no_more(self, client: Client) -> None:
        expected = [f"c{number}" for number in range(1001)]
        for id in expected:
            make(id)
        answer = post(client, "/conversations/bulk/archive", {"conversationIds": expected})
        assert answer.status_code == 400
        answer = post(client, "/conversations/bulk/archive", {"conversationIds": expected[1:]})
        assert answer.json()["updatedCount"] == 1000

    def test_an_unknown_verb_is_404(self, client: Client) -> None:
        assert (
            post(client, "/conversations/bulk/eat", {"conversationIds": ["a"]}).status_code == 404
        )


TURN = {"role": "user", "content": "hi", "model": "m", "provider": "openai", "status": "ok"}


@pytest.mark.django_db
class TestTurns:
    def test_a_posted_turn_is_returned(self, client: Client) -> None:
        make("c1")
        call = {
            "callId": "t1",
            "name": "VectorSearch",
            "params": {"query": "q"},
            "result": {"n": 1},
        }
        body = {
            **TURN,
            "role": "assistant",
            "content": "Zürich 🏔",
            "toolCalls": {"calls": [{**call, "stage": "success"}]},
            "usage": {"inputTokens": 5.0, "outputTokens": 0},
            "timing": {"totalTimeSec": 1.5},
            "command": {"name": "review", "stepIndex": 1, "totalSteps": 2},
            "status": "stopped",
        }
        answer = post(client, "/conversations/c1/turns", body)
        assert (answer.status_code, answer.json()) == (201, {"status": "ok"})
        (item,) = client.get("/conversations/c1/turns").json()["items"]
        assert item["content"] == "Zürich 🏔"
        assert item["usage"] == {"inputTokens": 5, "outputTokens": 0}
        assert item["command"]["stepIndex"] == 1
        assert (item["status"], item["source"]) == ("stopped", "REST")
        (event,) = item["toolCalls"]["calls"]
        assert event["parameters"] == {"query": "q"}
        assert (event["type"], event["stage"]) == ("tool-result", "success")
        assert item["createdAt"] == wire_time(Conversation.objects.get().last_message_at)

    def test_concurrent_turns_have_distinct_times(self, client: Client) -> None:
        make("c1")
        for number in range(20):
            post(client, "/conversations/c1/turns", {**TURN, "content": str(number)})
        items = client.get("/conversations/c1/turns").json()["items"]
        assert [item["content"] for item in items] == [str(n) for n in reversed(range(20))]
        assert len({item["createdAt"] for item in items}) == 20

    @pytest.mark.parametrize(
        "change",
        [
            {"role": "robot"},
            {"content": ""},
            {"content": 1},
            {"status": "running"},
            {"status": "great"},
            {"provider": "parrot"},
            {"toolCalls": "none"},
            {"usage": {"inputTokens": 1}},
            {"timing": {"totalTimeSec": 1}},
            {"command": {"name": "x"}},
            {"id": "mine"},
        ],
    )
    def test_refuses_invalid_values(self, client: Client, change: dict[str, Any]) -> None:
        make("c1")
        answer = post(client, "/conversations/c1/turns", {**TURN, **change})
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_error"
        assert list(answer.json()["details"]["body"]) == list(change)
        assert not Turn.objects.exists()

    @pytest.mark.parametrize("value", [-1, 1.5, True, "5", None])
    def test_usage_counts_are_whole_numbers(self, client: Client, value: Any) -> None:
        make("c1")
        body = {**TURN, "role": "assistant", "usage": {"inputTokens": value}}
        assert post(client, "/conversations/c1/turns", body).status_code == 400

    @pytest.mark.fault("A question is refused")
    def test_an_archived_conversation_takes_no_turn_but_shows_them(self, client: Client) -> None:
        make("c1", archived_at=NOON)
        say("c1", "hello", NOON)
        answer = post(client, "/conversations/c1/turns", TURN)
        assert (answer.status_code, answer.json()) == (410, {"error": "archived"})
        assert len(client.get("/conversations/c1/turns").json()["items"]) == 1

    def test_all_of_them_newest_first_whatever_the_query_says(self, client: Client) -> None:
        make("c1")
        for number in range(60):
            say("c1", str(number), NOON + timedelta(milliseconds=number))
        answer = client.get("/conversations/c1/turns?colour=red").json()
        assert [i["content"] for i in answer["items"]] == [str(n) for n in reversed(range(60))]
        assert set(answer) == {"items"}

    def test_an_answer_comes_after_its_question_though_their_times_tie(
        self, client: Client
    ) -> None:
        make("c1")
        say("c1", "answer", NOON, role="assistant")
        say("c1", "question", NOON)
        items = client.get("/conversations/c1/turns").json()["items"]
        assert [item["role"] for item in reversed(items)] == ["user", "assistant"]

    def test_pages_if_limit_or_cursor_is_set(self, client: Client) -> None:
        make("c1")
        for number in range(5):
            say("c1", str(number), NOON + timedelta(milliseconds=number // 3))
        answer = client.get("/conversations/c1/turns?limit=50").json()
        expected = [item["turnId"] for item in answer["items"]]
        assert len(expected) == 5
        for limit in range(1, 6):
            path = f"/conversations/c1/turns?limit={limit}"
            assert [i["turnId"] for page in pages(client, path) for i in page] == expected

    @pytest.mark.fault("Malformed requests")
    @pytest.mark.parametrize(
        "query",
        ["limit=x", "limit=1&colour=red", "cursor=x", "cursor=2026-01-31T12:00:00Z~not-a-key"],
    )
    def test_a_bad_page_is_refused(self, client: Client, query: str) -> None:
        make("c1")
        answer = client.get(f"/conversations/c1/turns?{query}")
        assert answer.status_code == 400

    def test_a_turn_without_text_shows_its_error(self, client: Client) -> None:
        make("c1")
        error = {"code": "PROVIDER_ERROR", "message": "It hung up."}
        say("c1", "", NOON, role="assistant", status="failed", error=error)
        say("c1", "", NOON + timedelta(1), role="assistant", status="stopped")
        items = client.get("/conversations/c1/turns").json()["items"]
        assert [item["content"] for item in items] == ["Stopped", "It hung up."]
        assert items[1]["error"] == error
