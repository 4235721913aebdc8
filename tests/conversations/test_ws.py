"""`/ws`: the JSON protocol of docs/contract.md §2.5, from hello to goodbye."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.utils import timezone

from apps.agents.events import (
    ReasoningDelta,
    TextDelta,
    TextReclassified,
    ToolCallRequested,
    UsageReported,
)
from apps.agents.messages import ToolCall, Usage
from apps.conversations import runner, services
from apps.conversations.models import Conversation
from apps.core.errors import Unavailable
from apps.index.changes import run_changed
from apps.index.models import IngestRun
from codeinfo.asgi import application
from tests.support.chat import PATIENCE, conversation, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]


class Socket:
    """One client of /ws."""

    def __init__(self, link: WebsocketCommunicator) -> None:
        self.link = link

    async def say(self, kind: str, **fields: Any) -> None:
        message = {"protocolVersion": "v1", "requestId": "r1", "type": kind, **fields}
        await self.link.send_to(text_data=json.dumps(message))

    async def hear(self) -> dict[str, Any]:
        raw = json.loads(await self.link.receive_from(timeout=PATIENCE))
        assert raw.pop("protocolVersion") == "v1"
        assert isinstance(raw["seq"], int)
        return dict(raw)

    async def hear_until(self, kind: str) -> list[dict[str, Any]]:
        received = [await self.hear()]
        while received[-1]["type"] != kind:
            received.append(await self.hear())
        return received

    async def subscribe(self, kind: str, **fields: Any) -> None:
        """Subscribe, and return once the server has."""
        await self.say(f"subscribe_{kind}", **fields)
        await self.settled()

    async def settled(self) -> None:
        # The answer to a question without a run comes after everything said before it was handled.
        await self.say("cancel_inflight", conversationId="echo", inflightId="echo")
        while (await self.hear())["conversationId"] != "echo":
            pass


@asynccontextmanager
async def connected() -> AsyncIterator[Socket]:
    link = WebsocketCommunicator(application, "/ws", headers=[(b"host", b"localhost")])
    accepted, _ = await link.connect(timeout=PATIENCE)
    assert accepted
    try:
        yield Socket(link)
    finally:
        await link.disconnect(timeout=PATIENCE)


def text_of(frames: list[dict[str, Any]], kind: str = "assistant_delta") -> str:
    return "".join(frame["delta"] for frame in frames if frame["type"] == kind)


BAD_FRAMES = [
    ("{", "malformed JSON"),
    ("", "malformed JSON"),
    (b"\xff\xfe", "malformed JSON"),
    ("[" * 60_000, "malformed JSON"),
    ("[]", "a message must be an object"),
    ('{"requestId":"r","type":"subscribe_sidebar"}', "protocolVersion must be v1"),
    ('{"protocolVersion":"v2","requestId":"r","type":"x"}', "protocolVersion must be v1"),
    ('{"protocolVersion":"v1","type":"subscribe_sidebar"}', "requestId is required"),
    ('{"protocolVersion":"v1","requestId":" ","type":"x"}', "requestId is required"),
    ('{"protocolVersion":"v1","requestId":"r"}', "type is required"),
    ('{"protocolVersion":"v1","requestId":"r","type":7}', "type is required"),
    (
        '{"protocolVersion":"v1","requestId":"r","type":"subscribe_conversation"}',
        "conversationId is required",
    ),
    (
        '{"protocolVersion":"v1","requestId":"r","type":"cancel_inflight","conversationId":"c"}',
        "inflightId is required",
    ),
]


class TestFrames:
    @pytest.mark.fault("Malformed requests")
    @pytest.mark.parametrize(("raw", "reason"), BAD_FRAMES)
    async def test_a_wrong_one_closes_the_socket_with_its_reason(
        self, raw: str | bytes, reason: str
    ) -> None:
        async with connected() as socket:
            await socket.link.send_input(
                {"type": "websocket.receive", "bytes" if isinstance(raw, bytes) else "text": raw}
            )
            closed = await socket.link.receive_output(timeout=PATIENCE)
            assert closed == {"type": "websocket.close", "code": 1008, "reason": reason}

    @pytest.mark.fault("Malformed requests")
    async def test_a_huge_one_closes_the_socket(self) -> None:
        async with connected() as socket:
            await socket.link.send_to(text_data="x" * 65_537)
            closed = await socket.link.receive_output(timeout=PATIENCE)
            assert closed["code"] == 1009

    async def test_an_unknown_type_is_ignored(self) -> None:
        async with connected() as socket:
            await socket.say("dance", step=1)
            await socket.say("unsubscribe_conversation", conversationId="never")
            await socket.say("unsubscribe_sidebar")
            await socket.say("unsubscribe_ingest")
            await socket.settled()

    async def test_json_in_a_binary_frame_is_as_good(self) -> None:
        async with connected() as socket:
            raw = {"protocolVersion": "v1", "requestId": "r", "type": "cancel_inflight"}
            raw |= {"conversationId": "c1", "inflightId": "i-1"}
            await socket.link.send_to(bytes_data=json.dumps(raw).encode())
            assert (await socket.hear())["type"] == "turn_final"


class TestConversation:
    async def test_a_run_is_told_from_its_beginning(self, scripted: Scripted) -> None:
        call = ToolCallRequested(ToolCall("t1", "NoTool", {"query": "q"}))
        usage = UsageReported(Usage(input_tokens=1, output_tokens=2))
        scripted([ReasoningDelta("hm"), call], [TextDelta("Be"), TextDelta("cause. ✨"), usage])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            log = await runner.start(question(inflight_id="i-1"))
            frames = await socket.hear_until("turn_final")
        assert [f["seq"] for f in frames[:2]] == [1, 2]
        assert sorted({f["seq"] for f in frames}) == [f["seq"] for f in frames]
        user, snapshot = frames[:2]
        assert (user["type"], user["content"], user["inflightId"]) == ("user_turn", "Why?", "i-1")
        assert user["createdAt"].endswith("Z")
        assert snapshot["inflight"] == {
            "inflightId": "i-1",
            "assistantText": "",
            "assistantThink": "",
            "toolEvents": [],
            "startedAt": snapshot["inflight"]["startedAt"],
        }
        assert text_of(frames) == "Because. ✨"
        assert text_of(frames, "analysis_delta") == "hm"
        events = [f["event"] for f in frames if f["type"] == "tool_event"]
        assert [e["type"] for e in events] == ["tool-request", "tool-result"]
        assert all(e["parameters"] == {"query": "q"} for e in events)
        final = frames[-1]
        assert (final["status"], final["inflightId"]) == ("ok", "i-1")
        assert final["usage"] == {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
        assert final["seq"] == log.seq + 2
        assert "error" not in final

    @pytest.mark.fault("The reader leaves or reloads")
    async def test_who_comes_in_the_middle_gets_the_rest_exactly(self, scripted: Scripted) -> None:
        gate = Gate()
        scripted([ReasoningDelta("hm"), TextDelta("one "), gate, TextDelta("two "), TextDelta("3")])
        log = await runner.start(question())
        await reached(gate.reached)
        async with connected() as first, connected() as second:
            await first.say("subscribe_conversation", conversationId="c1")
            snapshot = await first.hear()
            assert snapshot["type"] == "inflight_snapshot"
            assert snapshot["seq"] == log.seq + 2
            assert snapshot["inflight"]["assistantText"] == "one "
            assert snapshot["inflight"]["assistantThink"] == "hm"
            await second.say("subscribe_conversation", conversationId="c1")
            assert await second.hear() == snapshot
            gate.open.set()
            for socket in (first, second):
                rest = await socket.hear_until("turn_final")
                assert text_of(rest) == "two 3"
                assert min(frame["seq"] for frame in rest) > snapshot["seq"]

    async def test_text_that_was_reasoning_is_taken_back_by_a_snapshot(
        self, scripted: Scripted
    ) -> None:
        scripted([TextDelta("I search."), TextReclassified(), TextDelta("There.")])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            await runner.start(question())
            frames = await socket.hear_until("turn_final")
        assert [frame["seq"] for frame in frames] == sorted({frame["seq"] for frame in frames})
        snapshot = max(i for i, frame in enumerate(frames) if frame["type"] == "inflight_snapshot")
        state = frames[snapshot]["inflight"]
        assert (state["assistantText"], state["assistantThink"]) == ("", "I search.")
        assert text_of(frames[:snapshot]) == "I search."
        assert text_of(frames[snapshot:]) == "There."

    async def test_the_next_run_counts_from_one_again(self, scripted: Scripted) -> None:
        scripted([TextDelta("x")])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            for _ in range(3):
                await ended(await runner.start(question()))
            for _ in range(3):
                frames = await socket.hear_until("turn_final")
                assert [f["seq"] for f in frames] == [1, 2, 4, 5]

    @pytest.mark.fault("The reader leaves or reloads")
    async def test_a_slow_reader_gets_every_word_in_few_frames(self, scripted: Scripted) -> None:
        words = [f"{n} " for n in range(1000)]
        scripted([TextDelta(word) for word in words])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            await ended(await runner.start(question()))
            frames = await socket.hear_until("turn_final")
        assert text_of(frames) == "".join(words)
        assert len(frames) < 100

    async def test_a_failure_tells_why(self, scripted: Scripted) -> None:
        scripted([Unavailable("It hung up.", code="PROVIDER_ERROR")])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            await runner.start(question())
            final = (await socket.hear_until("turn_final"))[-1]
        assert final["status"] == "failed"
        assert final["error"] == {"code": "PROVIDER_ERROR", "message": "It hung up."}

    async def test_unsubscribing_and_other_conversations_are_quiet(
        self, scripted: Scripted
    ) -> None:
        scripted([TextDelta("x")])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            await socket.say("unsubscribe_conversation", conversationId="c1")
            await socket.subscribe("conversation", conversationId="c3")
            await ended(await runner.start(question()))
            await ended(await runner.start(question(conversation_id="c2")))
            assert await socket.link.receive_nothing()

    async def test_a_socket_that_leaves_ends_nothing(self, scripted: Scripted) -> None:
        gate = Gate()
        scripted([gate, TextDelta("whole")])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            log = await runner.start(question())
            await socket.hear_until("inflight_snapshot")
        gate.open.set()
        await ended(log)
        assert log.transcript.parts[0]["text"] == "whole"


class TestCancel:
    async def test_stops_the_run(self, scripted: Scripted) -> None:
        gate = Gate()
        scripted([TextDelta("half"), gate])
        async with connected() as socket:
            await socket.subscribe("conversation", conversationId="c1")
            await runner.start(question(inflight_id="i-1"))
            await reached(gate.reached)
            await socket.say("cancel_inflight", conversationId="c1", inflightId="i-1")
            frames = await socket.hear_until("turn_final")
        assert text_of(frames) == "half"
        assert frames[-1]["status"] == "stopped"

    @pytest.mark.parametrize("inflight", ["i-2", "nonsense\x00"])
    async def test_of_no_live_run_is_answered_as_failed(
        self, scripted: Scripted, inflight: str
    ) -> None:
        gate = Gate()
        scripted([gate, TextDelta("x")])
        log = await runner.start(question(inflight_id="i-1"))
        async with connected() as socket:
            await socket.say("cancel_inflight", conversationId="c1", inflightId=inflight)
            answer = await socket.hear()
        assert answer == {
            "type": "turn_final",
            "seq": 1,
            "conversationId": "c1",
            "inflightId": inflight,
            "status": "failed",
            "error": {
                "code": "INFLIGHT_NOT_FOUND",
                "message": "No active in-flight run found for conversation.",
            },
        }
        assert not log.finished
        gate.open.set()
        await ended(log)

    async def test_of_no_live_run_is_reported_to_all_subscribers(self) -> None:
        await conversation()
        async with connected() as other, connected() as sender:
            await other.subscribe("conversation", conversationId="c1")
            await sender.subscribe("conversation", conversationId="c1")
            await sender.say("cancel_inflight", conversationId="c1", inflightId="i-2")
            for socket in (other, sender):
                frames = await socket.hear_until("turn_final")
                assert frames[-1]["error"]["code"] == "INFLIGHT_NOT_FOUND"
                assert frames[-1]["inflightId"] == "i-2"


class TestSidebar:
    async def test_tells_what_changed_and_what_is_gone(self, scripted: Scripted) -> None:
        scripted([TextDelta("x")])
        await conversation(title="Old")
        async with connected() as socket:
            await socket.subscribe("sidebar")
            await asyncio.to_thread(services.rename, "c1", "New")
            upsert = await socket.hear()
            assert upsert["type"] == "conversation_upsert"
            assert upsert["conversation"]["title"] == "New"
            await asyncio.to_thread(services.archive, "c1")
            archived = await socket.hear()
            assert archived["conversation"]["archived"] is True
            await asyncio.to_thread(services.bulk_delete, ["c1"])
            deleted = await socket.hear()
            assert (deleted["type"], deleted["conversationId"]) == ("conversation_delete", "c1")
            assert upsert["seq"] < archived["seq"] < deleted["seq"]
            await ended(await runner.start(question(conversation_id="c2")))
            made = await socket.hear()
            assert made["conversation"]["conversationId"] == "c2"
        assert await Conversation.objects.acount() == 1


class TestIngest:
    async def run(self) -> IngestRun:
        return await IngestRun.objects.acreate(
            operation="start", path="/x", name="x", model="m", state="scanning",
            heartbeat_at=timezone.now(),
        )  # fmt: skip

    async def test_begins_with_a_snapshot_and_tells_of_every_change(self) -> None:
        async with connected() as socket:
            await socket.say("subscribe_ingest")
            assert await socket.hear() == {"type": "ingest_snapshot", "seq": 1, "status": None}
            run = await self.run()
            run_changed(run.id)
            update = await socket.hear()
            assert (update["type"], update["seq"]) == ("ingest_update", 2)
            assert update["status"]["runId"] == str(run.id)
            assert update["status"]["state"] == "scanning"
            assert {"files", "chunks", "embedded"} <= set(update["status"]["counts"])
            await socket.say("unsubscribe_ingest")
            await socket.settled()
            run_changed(run.id)
            assert await socket.link.receive_nothing()
