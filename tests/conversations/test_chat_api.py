"""`POST /chat` in both forms, Stop, providers and models (contract.md §2.1–§2.5), through HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import groupby
from typing import Any

import pytest
from django.db import OperationalError
from django.test import AsyncClient
from django.utils import timezone

from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested, Warned
from apps.agents.messages import ToolCall
from apps.agents.providers.base import Availability
from apps.conversations import event_streams, rows, runner
from apps.conversations.models import Conversation, Turn
from apps.core.errors import Unavailable
from tests.conversations.frames import SSE, events_of, finished, streamed
from tests.support.chat import PATIENCE, answers, conversation, ended, question, reached
from tests.support.entries import Entries
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
Ask = Callable[..., Any]


def messages_of(raw: str) -> list[dict[str, Any]]:
    """The JSON of every data frame; each frame must be an id and a line between blank ones."""
    return [message for _, message in events_of(raw)]


class TestTheJsonForm:
    async def test_starts_a_run_and_returns_its_ids(self, scripted: Scripted, ask: Ask) -> None:
        scripted([TextDelta("Because.")])
        answer = await ask(message="  Why?\n", inflightId="i-1")
        assert answer.status_code == 202
        assert answer.json() == {
            "status": "started",
            "conversationId": "c1",
            "inflightId": "i-1",
            "provider": "openai",
            "model": "m-1",
        }
        await finished()
        made = await Conversation.objects.aget(pk="c1")
        assert (made.title, made.provider, made.flags) == ("Why?", "openai", {})
        user = await Turn.objects.aget(role="user")
        assert user.parts == [{"type": "text", "text": "  Why?\n"}]

    async def test_a_later_question_may_change_the_model_but_not_the_conversations_provider(
        self, scripted: Scripted, ask: Ask
    ) -> None:
        scripted()
        await conversation(provider="builtin", model="search", title="Mine", flags={"a": 1})
        await ask(model="m-2")
        await finished()
        row = await Conversation.objects.aget(pk="c1")
        assert (row.provider, row.model, row.title) == ("builtin", "m-2", "Mine")
        assert row.flags == {"a": 1}
        assert (await answers())[0].provider == "openai"

    async def test_titles_are_cut_at_80_characters(self, scripted: Scripted, ask: Ask) -> None:
        scripted()
        await ask(message=" " + "é" * 200)
        await finished()
        assert (await Conversation.objects.aget()).title == "é" * 80

    async def test_any_text_survives(self, scripted: Scripted, ask: Ask) -> None:
        odd_text = 'Zürich 🏔\u202e\x01 "quoted"\r\n</script> \u2028'
        scripted([TextDelta(odd_text)])
        await ask(message=odd_text)
        await finished()
        turns = [t async for t in Turn.objects.order_by("created_at")]
        assert [t.parts[0]["text"] for t in turns] == [odd_text, odd_text]

    async def test_characters_that_cannot_be_stored_are_replaced(
        self, scripted: Scripted, ask: Ask
    ) -> None:
        scripted()
        await ask(message="half \ud83d nul \x00")
        await finished()
        user = await Turn.objects.aget(role="user")
        assert user.parts[0]["text"] == "half \ufffd nul \ufffd"


REFUSED = [
    ({"messages": []}, "conversationId required; history is loaded server-side"),
    ({"messages": None, "model": ""}, "conversationId required; history is loaded server-side"),
    ({"model": " ", "message": ""}, "model is required"),
    ({"model": 5}, "model is required"),
    ({"message": "\n"}, "message is required"),
    ({"message": None, "conversationId": ""}, "message is required"),
    ({"conversationId": None}, "conversationId is required"),
    ({"conversationId": "a/b"}, "conversationId must be"),
    ({"conversationId": "x" * 129}, "conversationId must be"),
    ({"conversationId": "c1\n"}, "conversationId must be"),
    ({"provider": "codex", "threadId": 5}, "threadId must be a string"),
    ({"inflightId": ""}, "inflightId must be a non-empty string"),
    ({"inflightId": None}, "inflightId must be a non-empty string"),
    ({"inflightId": "a\r\nX: y"}, "inflightId must be"),
    (
        {"sandboxMode": "none"},
        "sandboxMode must be one of: read-only, workspace-write, danger",
    ),
    ({"approvalPolicy": 1}, "approvalPolicy must be one of: never, on-request, on-failure, untr"),
    ({"modelReasoningEffort": "huge"}, "modelReasoningEffort must be one of: low, medium, high"),
    ({"networkAccessEnabled": "true"}, "networkAccessEnabled must be a boolean"),
    ({"webSearchEnabled": 1}, "webSearchEnabled must be a boolean"),
]


class TestRefusals:
    @pytest.mark.parametrize(("change", "message"), REFUSED)
    async def test_the_first_broken_rule_is_named_in_both_envelopes(
        self, scripted: Scripted, ask: Ask, change: dict[str, Any], message: str
    ) -> None:
        scripted()
        answer = await ask(**change)
        assert answer.status_code == 400
        body = answer.json()
        assert (body["status"], body["code"]) == ("error", "VALIDATION_FAILED")
        assert body["message"].startswith(message)
        answer = await ask(accept=SSE, **change)
        assert answer.status_code == 400
        assert answer.json() == {"error": "invalid request", "message": body["message"]}
        assert not await Conversation.objects.aexists()

    @pytest.mark.fault("Malformed requests")
    @pytest.mark.parametrize("raw", ["", "{", "[]", '"text"', "null", "[" * 20_000])
    async def test_a_body_that_is_no_object(self, async_client: AsyncClient, raw: str) -> None:
        answer = await async_client.post("/chat", raw, content_type="application/json")
        assert answer.status_code == 400
        assert answer.json()["message"] == "request body must be an object"

    async def test_an_oversized_body_comes_before_everything(self, ask: Ask) -> None:
        answer = await ask(message="é" * 40_000, messages=[])
        assert answer.status_code == 400
        assert answer.json()["code"] == "PAYLOAD_TOO_LARGE"
        answer = await ask(accept=SSE, message="x" * 40_000)
        assert (answer.status_code, answer.json()) == (400, {"error": "payload too large"})

    async def test_another_content_type(self, async_client: AsyncClient) -> None:
        answer = await async_client.post("/chat", "{}", content_type="text/plain")
        assert answer.status_code == 415

    async def test_an_unknown_provider(self, ask: Ask) -> None:
        answer = await ask(provider="parrot")
        assert answer.status_code == 400
        assert answer.json()["code"] == "UNSUPPORTED_PROVIDER"
        answer = await ask(accept=SSE, provider="parrot")
        assert answer.json()["error"] == "unsupported provider"

    async def test_an_unavailable_provider_creates_no_conversation(
        self, scripted: Scripted, ask: Ask
    ) -> None:
        provider = scripted()
        provider.offered = type(provider.offered)(available=False, reason="No key is set.")
        answer = await ask()
        assert answer.status_code == 503
        assert answer.json()["code"] == "PROVIDER_UNAVAILABLE"
        assert answer.json()["message"] == "No key is set."
        answer = await ask(accept=SSE)
        assert answer.status_code == 503
        assert answer.json() == {"error": "openai unavailable", "reason": "No key is set."}
        assert not await Conversation.objects.aexists()

    @pytest.mark.door
    @pytest.mark.parametrize("provider", ["", None, 7])
    async def test_no_provider_means_lmstudio(self, ask: Ask, provider: Any) -> None:
        answer = await ask(accept=SSE, provider=provider)
        assert answer.status_code == 503
        assert answer.json()["error"] == "lmstudio unavailable"

    @pytest.mark.fault("A question is refused")
    async def test_an_archived_conversation(self, scripted: Scripted, ask: Ask) -> None:
        scripted()
        await conversation(archived_at=timezone.now())
        answer = await ask()
        assert answer.status_code == 410
        assert answer.json() == {
            "status": "error",
            "code": "CONVERSATION_ARCHIVED",
            "message": "Conversation is archived and must be restored before use.",
        }
        answer = await ask(accept=SSE)
        assert (answer.status_code, answer.json()) == (410, {"error": "archived"})

    @pytest.mark.fault("A question is refused")
    async def test_a_second_run(self, scripted: Scripted, ask: Ask) -> None:
        gate = Gate()
        scripted([gate, TextDelta("x")])
        await ask()
        await reached(gate.reached)
        answer = await ask()
        assert answer.status_code == 409
        assert answer.json() == {
            "status": "error",
            "code": "RUN_IN_PROGRESS",
            "message": "Conversation already has an active run.",
        }
        assert (await ask(conversationId="c2")).status_code == 202
        gate.open.set()
        await finished()
        assert (await ask()).status_code == 202

    @pytest.mark.fault("The database is locked")
    @pytest.mark.parametrize("accept", ["application/json", SSE])
    async def test_a_database_that_stays_locked(
        self, scripted: Scripted, ask: Ask, monkeypatch: pytest.MonkeyPatch, accept: str
    ) -> None:
        def locked(*_: Any) -> None:
            raise OperationalError("database is locked")

        scripted()
        monkeypatch.setattr(rows, "start_turn", locked)
        answer = await ask(accept=accept)
        assert answer.status_code == 503
        assert answer["Retry-After"]
        assert answer.json()["code"] == "DATABASE_UNAVAILABLE"

    async def test_codex_flags_are_ignored_for_others_with_a_warning(
        self, scripted: Scripted, ask: Ask, caplog: pytest.LogCaptureFixture
    ) -> None:
        scripted()
        answer = await ask(webSearchEnabled=False, threadId="t-1")
        assert answer.status_code == 202
        assert 'webSearchEnabled is Codex-only and was ignored for provider "openai"' in caplog.text
        assert (await Conversation.objects.aget()).flags == {}


class TestTheEventStream:
    async def test_sends_every_event_of_an_answer(self, scripted: Scripted, ask: Ask) -> None:
        call = ToolCallRequested(ToolCall("t1", "NoTool", {"query": "q"}))
        scripted([ReasoningDelta("hm"), call], [TextDelta("Be"), TextDelta("cause.\n\nTrue.")])
        answer = await ask(accept=SSE, inflightId="i-1")
        assert answer.status_code == 200
        assert answer["Content-Type"] == "text/event-stream"
        assert answer["X-Inflight-Id"] == "i-1"
        assert answer["Cache-Control"] == "no-cache"
        assert answer["X-Accel-Buffering"] == "no"
        raw = await streamed(answer)
        assert raw.startswith(":\n\n")
        messages = messages_of(raw)
        # A busy machine sends a token for each delta.
        kinds = [kind for kind, _ in groupby(message["type"] for message in messages)]
        assert kinds == [*("analysis", "tool-request", "tool-result", "token", "final", "complete")]
        tokens = [message["content"] for message in messages if message["type"] == "token"]
        assert "".join(tokens) == "Because.\n\nTrue."
        request, result = messages[1:3]
        assert request["parameters"] == {"query": "q"}
        assert (request["callId"], request["stage"]) == ("t1", "started")
        assert (result["callId"], result["stage"]) == ("t1", "error")
        assert result["errorTrimmed"]["code"] == "UNKNOWN_TOOL"
        assert messages[-2]["message"] == {"role": "assistant", "content": "Because.\n\nTrue."}

    async def test_neighbouring_deltas_are_joined(self, scripted: Scripted, ask: Ask) -> None:
        gate = Gate()
        scripted(
            [TextDelta("a"), gate, *map(TextDelta, "bcd"), ReasoningDelta("hm"), TextDelta("e")]
        )
        answer = await ask(accept=SSE)
        pieces = aiter(answer.streaming_content)
        assert await anext(pieces) == b":\n\n"
        assert messages_of((await anext(pieces)).decode()) == [{"type": "token", "content": "a"}]
        gate.open.set()
        received = messages_of(b"".join([piece async for piece in pieces]).decode())
        assert [m.get("content") for m in received[:3]] == ["bcd", "hm", "e"]

    async def test_sends_heartbeats_at_the_start_and_in_silence(
        self, scripted: Scripted, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.01)
        gate = Gate()
        scripted([gate, TextDelta("x")])
        answer = await ask(accept=SSE)
        pieces = aiter(answer.streaming_content)
        assert [(await anext(pieces)) for _ in range(4)] == [b":\n\n"] * 4
        gate.open.set()
        rest = b"".join([piece async for piece in pieces]).decode()
        assert [m["type"] for m in messages_of(rest)] == ["token", "final", "complete"]

    async def test_a_warning_is_an_event(self, scripted: Scripted, ask: Ask) -> None:
        scripted([Warned("Reconnecting... 1/3"), TextDelta("So.")])
        messages = messages_of(await streamed(await ask(accept=SSE)))
        assert messages[:2] == [
            {"type": "warning", "message": "Reconnecting... 1/3"},
            {"type": "token", "content": "So."},
        ]

    async def test_an_error_is_an_event(self, scripted: Scripted, ask: Ask) -> None:
        scripted([TextDelta("half"), Unavailable("It hung up.", code="PROVIDER_ERROR")])
        messages = messages_of(await streamed(await ask(accept=SSE)))
        assert messages == [
            {"type": "token", "content": "half"},
            {"type": "error", "message": "It hung up."},
        ]

    async def test_a_stop_ends_it(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        gate = Gate()
        scripted([TextDelta("half"), gate, TextDelta("never")])
        answer = await ask(accept=SSE)
        await reached(gate.reached)
        stopped = await async_client.generic("POST", "/conversations/c1/cancel")
        assert stopped.status_code == 202
        messages = messages_of(await streamed(answer))
        assert messages[-1] == {"type": "error", "message": "generation stopped"}
        assert [m["type"] for m in messages] == ["token", "error"]

    @pytest.mark.fault("The reader leaves or reloads")
    async def test_closing_it_ends_only_the_stream(self, scripted: Scripted, ask: Ask) -> None:
        gate = Gate()
        scripted([TextDelta("half"), gate, TextDelta(" whole")])
        await self.leave(await ask(accept=SSE), gate)
        gate.open.set()
        await finished()
        (turn,) = await answers()
        assert (turn.status, turn.parts[0]["text"]) == ("ok", "half whole")

    async def test_closing_it_stops_the_run_if_requested(
        self, scripted: Scripted, ask: Ask, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", logger="codeinfo")
        gate = Gate()
        scripted([TextDelta("half"), gate, TextDelta(" whole")])
        await self.leave(await ask(accept=SSE, cancelOnDisconnect=True), gate)
        await finished()
        (turn,) = await answers()
        assert (turn.status, turn.parts[0]["text"]) == ("stopped", "half")
        (left,) = [r for r in caplog.records if r.message == "chat stream left"]
        assert left.context["reason"] == "client_disconnect"

    async def leave(self, answer: Any, gate: Gate) -> None:
        """Read up to the gate, then be cancelled as a server does when the client goes."""

        async def read(pieces: AsyncIterator[bytes]) -> None:
            async for _ in pieces:
                pass

        reading = asyncio.create_task(read(aiter(answer.streaming_content)))
        await reached(gate.reached)
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    async def test_a_slow_reader_misses_nothing(self, scripted: Scripted, ask: Ask) -> None:
        scripted([TextDelta(f"{n} ") for n in range(500)])
        answer = await ask(accept=SSE)
        await finished()
        messages = messages_of(await streamed(answer))
        text = "".join(f"{n} " for n in range(500))
        assert "".join(m["content"] for m in messages if m["type"] == "token") == text
        assert messages[-2]["message"]["content"] == text


class TestCancel:
    async def post(self, client: AsyncClient, id: str, body: Any = None) -> Any:
        raw = "" if body is None else json.dumps(body)
        return await client.post(
            f"/conversations/{id}/cancel", raw, content_type="application/json"
        )

    async def test_stops_the_named_run_or_any(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        for body in ({"inflightId": "i-1"}, {}, None):
            gate = Gate()
            scripted([gate])
            log = await runner.start(question(inflight_id="i-1"))
            await reached(gate.reached)
            answer = await self.post(async_client, "c1", {"inflightId": "i-2"})
            assert answer.status_code == 404
            answer = await self.post(async_client, "c1", body)
            assert (answer.status_code, answer.json()) == (202, {"status": "ok"})
            await ended(log)
        assert [turn.status for turn in await answers()] == ["stopped"] * 3

    @pytest.mark.fault("A question is refused")
    @pytest.mark.parametrize("id", ["c1", "nobody", "%00"])
    async def test_without_a_run_it_is_404(self, async_client: AsyncClient, id: str) -> None:
        await conversation()
        answer = await self.post(async_client, id)
        assert answer.status_code == 404
        assert answer.json()["code"] == "INFLIGHT_NOT_FOUND"

    @pytest.mark.parametrize("body", [[], "x", {"inflightId": 1}, {"inflightId": ""}, {"id": "x"}])
    async def test_a_bad_body_is_refused(self, async_client: AsyncClient, body: Any) -> None:
        answer = await self.post(async_client, "c1", body)
        assert answer.status_code == 400
        assert answer.json()["error"] == "validation_error"


class TestTheSnapshot:
    async def test_turns_include_the_running_answer(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        before, after = Gate(), Gate()
        call = ToolCallRequested(ToolCall("t1", "NoTool", {}))
        scripted([ReasoningDelta("hm"), call], [before, TextDelta("half"), after])
        log = await runner.start(question(inflight_id="i-1"))
        await reached(before.reached)
        body = (await async_client.get("/conversations/c1/turns")).json()
        assert [item["role"] for item in body["items"]] == ["user"]
        assert body["inflight"]["assistantThink"] == "hm"
        assert body["inflight"]["assistantText"] == ""
        before.open.set()
        await reached(after.reached)
        body = (await async_client.get("/conversations/c1/turns")).json()
        inflight = body["inflight"]
        assert inflight["inflightId"] == "i-1"
        assert inflight["assistantText"] == "half"
        assert [event["type"] for event in inflight["toolEvents"]] == ["tool-result"]
        assert inflight["seq"] == log.seq + 2
        assert [(i["role"], i["status"]) for i in body["items"]] == [
            ("assistant", "ok"),
            ("user", "ok"),
        ]
        assert body["items"][0]["content"] == "half"
        paged = (await async_client.get("/conversations/c1/turns?limit=9")).json()
        assert [item["role"] for item in paged["items"]] == ["user"]
        runner.stop(log)
        await ended(log)
        body = (await async_client.get("/conversations/c1/turns")).json()
        assert set(body) == {"items"}
        assert body["items"][0]["status"] == "stopped"

    async def test_no_text_of_a_model_can_break_the_answer(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        scripted(
            [ToolCallRequested(ToolCall("t1", "NoTool", {"query": "\ud83d"}))], [TextDelta("x")]
        )
        await ended(await runner.start(question()))
        answer = await async_client.get("/conversations/c1/turns")
        assert answer.status_code == 200
        (call,) = answer.json()["items"][0]["toolCalls"]["calls"]
        # PostgreSQL keeps no half of a character.
        assert call["parameters"]["query"] in ("\ud83d", "\ufffd")

    async def test_a_run_of_another_process_is_read_from_its_row(
        self, async_client: AsyncClient
    ) -> None:
        await conversation()
        await Turn.objects.acreate(
            conversation_id="c1",
            role="assistant",
            status="running",
            inflight_id="i-9",
            parts=[{"type": "text", "text": "from afar"}],
            heartbeat_at=timezone.now(),
        )
        body = (await async_client.get("/conversations/c1/turns")).json()
        assert body["inflight"]["assistantText"] == "from afar"
        await Turn.objects.aupdate(heartbeat_at=None)
        body = (await async_client.get("/conversations/c1/turns")).json()
        assert set(body) == {"items"}
        assert body["items"][0]["error"]["code"] == "INTERRUPTED"


class TestChoices:
    @pytest.mark.door
    async def test_unavailable_providers_have_a_reason(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        provider = scripted()
        provider.offered = type(provider.offered)(available=False, reason="No key is set.")
        listed = (await async_client.get("/chat/providers")).json()["providers"]
        assert listed[0] == {
            "id": "openai",
            "label": "Scripted",
            "available": False,
            "toolsAvailable": False,
            "reason": "No key is set.",
        }
        assert {"id": "builtin", "available": True}.items() <= listed[-1].items()

    async def test_models_of_a_provider(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        scripted()
        answer = await async_client.get("/chat/models?provider=openai")
        assert answer.json() == {
            "provider": "openai",
            "available": True,
            "toolsAvailable": True,
            "models": [{"key": "m-1", "displayName": "Model one", "type": "llm"}],
        }
        builtin = (await async_client.get("/chat/models?provider=builtin")).json()
        assert [model["key"] for model in builtin["models"]] == ["search"]

    async def test_models_of_an_unavailable_provider(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        provider = scripted()
        provider.models_error = Unavailable("It hung up.")
        answer = await async_client.get("/chat/models?provider=openai")
        assert answer.status_code == 503
        assert (answer.json()["models"], answer.json()["reason"]) == ([], "It hung up.")
        provider.offered = type(provider.offered)(available=False, reason="No key is set.")
        answer = await async_client.get("/chat/models?provider=openai")
        assert answer.status_code == 200
        assert (answer.json()["models"], answer.json()["reason"]) == ([], "No key is set.")

    async def test_a_list_of_models_is_one_entry_with_origin_count_or_code_and_time(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        provider = scripted()
        with Entries() as entries:
            await async_client.get("/chat/models?provider=openai")
            provider.models_error = Unavailable("It hung up.")
            await async_client.get("/chat/models?provider=openai")
            provider.offered = Availability(available=False, reason="No key is set.")
            await async_client.get("/chat/models?provider=openai")
        found = [e["context"] for e in entries.all if e["message"] == "chat models"]
        assert all(each.pop("ms") >= 0 for each in found)
        asked = {"provider": "openai", "baseUrl": "http://model.test:1234"}
        assert found == [
            asked | {"count": 1},
            asked | {"code": "UNAVAILABLE"},
            asked | {"count": 0, "code": "PROVIDER_UNAVAILABLE"},
        ]

    @pytest.mark.door
    @pytest.mark.parametrize("query", ["", "?provider=", "?provider=lmstudio", "?provider=parrot"])
    async def test_an_unknown_provider_means_lmstudio(
        self, async_client: AsyncClient, query: str
    ) -> None:
        answer = await async_client.get(f"/chat/models{query}")
        assert answer.status_code == 503
        expected = {"error": "lmstudio unavailable", "provider": "lmstudio", "models": []}
        assert expected.items() <= answer.json().items()


async def test_the_builtin_provider_answers_with_nothing_ingested(
    ask: Ask,
) -> None:
    answer = await ask(accept=SSE, provider="builtin", model="search")
    messages = messages_of(await asyncio.wait_for(streamed(answer), PATIENCE))
    assert [m["type"] for m in messages if m["type"].startswith("tool")] == [
        "tool-request",
        "tool-result",
    ]
    assert messages[-1] == {"type": "complete"}
    assert "ingest" in messages[-2]["message"]["content"].lower()
