"""`GET /conversations/<id>/events`: an answer whose stream was lost continues where it was."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from apps.agents.events import ReasoningDelta, TextDelta, ThreadNamed, ToolCallRequested, Warned
from apps.agents.messages import ToolCall
from apps.conversations import event_streams, runner
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import LiveRuns, RunLog, live_runs
from apps.core.errors import Unavailable
from tests.conversations.frames import SSE, events_of, finished, streamed
from tests.support.chat import answers, append, conversation, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
Ask = Callable[..., Any]
Events = list[tuple[str, dict[str, Any]]]
CALL = ToolCallRequested(ToolCall("t1", "NoTool", {"query": "q"}))
WHOLE = (
    [ReasoningDelta("hm"), ReasoningDelta(" hm"), Warned("Slow."), CALL],
    [TextDelta("Be"), TextDelta("cause."), ThreadNamed("thread-1"), TextDelta(" True.")],
)


async def resumed(
    client: AsyncClient, last: str | None = None, path: str = "/conversations/c1/events"
) -> Any:
    """The response to a client that comes back with the id of the last event that it has."""
    headers = {"accept": SSE} | ({} if last is None else {"last-event-id": last})
    return await client.get(path, headers=headers)


async def rest(client: AsyncClient, last: str | None = None) -> Events:
    answer = await resumed(client, last)
    if answer.status_code == 204:
        return []
    assert (answer.status_code, answer["content-type"]) == (200, SSE)
    assert answer["Cache-Control"] == "no-cache" and answer["X-Accel-Buffering"] == "no"
    return events_of(await streamed(answer))


async def forget() -> None:
    """The server has started again since: only rows are left."""
    if (log := live_runs.ended("c1")) is not None:
        live_runs.forget(log)


@pytest.fixture(params=[0.0, 3_600.0], ids=["one by one", "together"])
def arrival(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many texts reach a reader at once: otherwise it depends on how busy the machine is."""
    monkeypatch.setattr("apps.agents.stream_scheduler.BURST_SECONDS", request.param)


def joined(events: Events) -> Events:
    """With neighbouring texts as one, which has the last id."""
    whole: Events = []
    for id, message in events:
        if whole and message["type"] == whole[-1][1]["type"] == "token":
            message = message | {"content": whole.pop()[1]["content"] + message["content"]}
        whole.append((id, message))
    return whole


def kinds(events: Events) -> list[str]:
    return [message["type"] for _, message in events]


def text(events: Events) -> str:
    return "".join(m["content"] for _, m in events if m["type"] == "token")


class TestIds:
    async def test_every_event_has_the_number_of_its_last_event(
        self, arrival: None, scripted: Scripted, ask: Ask
    ) -> None:
        scripted(*WHOLE)
        events = events_of(await streamed(await ask(accept=SSE)))
        (turn,) = await answers()
        runs, numbers = zip(*(id.split(":") for id, _ in events), strict=True)
        assert set(runs) == {str(turn.pk)}
        assert list(map(int, numbers)) == sorted({int(number) for number in numbers})
        assert kinds(joined(events)) == [
            *("analysis", "analysis", "warning", "tool-request", "tool-result"),
            *("token", "thread", "token", "final", "complete"),
        ]

    async def test_runs_with_the_same_inflight_id_have_other_ids(
        self, scripted: Scripted, ask: Ask
    ) -> None:
        scripted([TextDelta("x")])
        first = events_of(await streamed(await ask(accept=SSE, inflightId="i-1")))
        second = events_of(await streamed(await ask(accept=SSE, inflightId="i-1")))
        assert not {id for id, _ in first} & {id for id, _ in second}


class TestAnAnswerThatHasJustEnded:
    async def test_continues_after_each_event_without_loss_and_without_repetition(
        self, arrival: None, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        scripted(*WHOLE)
        whole = events_of(await streamed(await ask(accept=SSE)))
        for position, (id, _) in enumerate(whole):
            assert joined(await rest(async_client, id)) == joined(whole[position + 1 :])
        assert joined(await rest(async_client)) == joined(whole)

    async def test_every_number_may_be_the_last(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        """Texts that arrived together are one event; another reader may have had less of them."""
        scripted([TextDelta(word) for word in "abcd"])
        whole = events_of(await streamed(await ask(accept=SSE)))
        turn_id, last = whole[-1][0].split(":")
        log = live_runs.ended("c1")
        assert log is not None
        for number in range(int(last) + 1):
            said = "".join(e.text for e in log.events[:number] if hasattr(e, "text"))
            events = await rest(async_client, f"{turn_id}:{number}")
            assert said + text(events) == "abcd"

    @pytest.mark.parametrize("end", [Unavailable("It hung up.", code="PROVIDER_ERROR"), None])
    async def test_after_its_last_event_there_is_nothing_more(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient, end: Exception | None
    ) -> None:
        scripted([TextDelta("half"), *([end] if end else [])])
        whole = events_of(await streamed(await ask(accept=SSE)))
        answer = await resumed(async_client, whole[-1][0])
        assert (answer.status_code, answer.content) == (204, b"")

    async def test_the_id_can_be_in_the_query_and_the_header_precedes_it(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        scripted([TextDelta("x")])
        whole = events_of(await streamed(await ask(accept=SSE)))
        path = f"/conversations/c1/events?lastEventId={whole[-1][0]}"
        assert (await resumed(async_client, path=path)).status_code == 204
        answer = await resumed(async_client, whole[-2][0], path)
        assert events_of(await streamed(answer)) == whole[-1:]

    async def test_its_log_is_forgotten_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("apps.conversations.stream.MAX_ENDED", 2)
        runs = LiveRuns()
        logs = [RunLog(f"c{n}", "i", str(uuid4()), "", "", "p", "m") for n in range(3)]
        for log in logs:
            runs.add(log)
            runs.remove(log)
        assert [runs.ended(log.conversation_id) for log in logs] == [None, logs[1], logs[2]]
        runs.forget(logs[1])
        assert runs.ended("c1") is None


class TestARunningAnswer:
    async def test_continues_to_its_end(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        before, after = Gate(), Gate()
        scripted([TextDelta("a"), before, TextDelta("b"), after, TextDelta("c")])
        first = aiter((await ask(accept=SSE, inflightId="i-1")).streaming_content)
        assert await anext(first) == b":\n\n"
        ((last, message),) = events_of((await anext(first)).decode())
        assert message == {"type": "token", "content": "a"}
        before.open.set()
        await reached(after.reached)
        answer = await resumed(async_client, last)
        assert answer["X-Inflight-Id"] == "i-1"
        pieces = aiter(answer.streaming_content)
        assert await anext(pieces) == b":\n\n"
        ((_, message),) = events_of((await anext(pieces)).decode())
        assert message == {"type": "token", "content": "b"}
        after.open.set()
        remaining = events_of(b"".join([piece async for piece in pieces]).decode())
        assert kinds(remaining) == ["token", "final", "complete"]
        assert remaining[-2][1]["message"]["content"] == "abc"

    async def test_leaving_the_continued_stream_does_not_stop_the_run(
        self, scripted: Scripted, async_client: AsyncClient
    ) -> None:
        gate = Gate()
        scripted([TextDelta("half"), gate, TextDelta(" whole")])
        log = await runner.start(question())
        await reached(gate.reached)
        answer = await resumed(async_client)
        pieces = answer.streaming_content
        await anext(aiter(pieces))
        await pieces.aclose()
        gate.open.set()
        await ended(log)
        assert (await answers())[0].status == "ok"

    @pytest.mark.parametrize("of_it", [True, False])
    async def test_an_id_that_it_has_not_reached_or_of_another_run_is_ignored(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient, of_it: bool
    ) -> None:
        gate = Gate()
        scripted([TextDelta("old")], [TextDelta("a"), gate, TextDelta("b")])
        old = events_of(await streamed(await ask(accept=SSE)))
        log = await runner.start(question())
        await reached(gate.reached)
        answer = await resumed(async_client, f"{log.turn_id}:999" if of_it else old[-1][0])
        gate.open.set()
        assert text(events_of(await streamed(answer))) == "ab"


UNUSED = "00000000-0000-4000-8000-000000000000"
BAD_IDS = ["", "x", "7", ":", "i-1:5", "²", "9" * 400, f"{UNUSED}:²", f"{UNUSED}:-1", "é\x7f"]


@pytest.mark.parametrize("last", BAD_IDS)
async def test_what_is_no_id_is_ignored(
    scripted: Scripted, ask: Ask, async_client: AsyncClient, last: str
) -> None:
    scripted([TextDelta("x")])
    whole = events_of(await streamed(await ask(accept=SSE)))
    assert await rest(async_client, last) == whole


class TestAnAnswerThatIsOnlyStored:
    async def test_is_sent_as_a_snapshot_and_its_end(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        scripted(*WHOLE)
        whole = events_of(await streamed(await ask(accept=SSE, inflightId="i-1")))
        await forget()
        (turn,) = await answers()
        answer = await resumed(async_client, whole[1][0])
        raw = await streamed(answer)
        snapshot, final, complete = [frame for frame in raw.split("\n\n") if frame not in ("", ":")]
        assert snapshot.startswith('data: {"type": "snapshot"')
        shown = (await async_client.get("/conversations/c1/turns")).json()["items"][0]
        assert shown["content"] == "Because. True."
        for part in ('"inflightId": "i-1"', '"assistantText": "Because. True."', '"hm hm"', '"t1"'):
            assert part in snapshot
        assert '"type": "final"' in final and "Because. True." in final
        assert complete == (
            f'id: {turn.pk}:end\ndata: {{"type": "complete", "threadId": "thread-1"}}'
        )
        assert (await resumed(async_client, f"{turn.pk}:end")).status_code == 204

    @pytest.mark.parametrize(
        ("status", "error", "expected"),
        [
            ("failed", {"code": "X", "message": "It hung up."}, "It hung up."),
            ("failed", None, ""),
            ("stopped", None, "generation stopped"),
        ],
    )
    async def test_a_bad_end_is_an_error(
        self, async_client: AsyncClient, status: str, error: Any, expected: str
    ) -> None:
        row = await conversation()
        fields = {"role": "assistant", "provider": "openai", "model": "m-1"}
        await Turn.objects.acreate(conversation=row, status=status, error=error, **fields)
        raw = await streamed(await resumed(async_client))
        assert raw.split("\n\n")[-2].endswith(f'data: {{"type": "error", "message": "{expected}"}}')

    async def test_the_row_of_another_process_is_followed_to_its_end(
        self, async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = await conversation()
        fields = {"role": "assistant", "provider": "openai", "model": "m-1", "owner": "far/1/x"}
        turn = await Turn.objects.acreate(
            conversation=row, status="running", heartbeat_at=timezone.now(), **fields
        )
        parts: list[dict[str, Any]] = [{"type": "text", "text": "half"}]
        polls = []

        async def pause(seconds: float) -> None:
            polls.append(seconds)
            if len(polls) == 1:
                await Turn.objects.filter(pk=turn.pk).aupdate(parts=parts)
            if len(polls) == 3:
                whole = [{"type": "text", "text": "half whole"}]
                await Turn.objects.filter(pk=turn.pk).aupdate(parts=whole, status="ok")

        monkeypatch.setattr(event_streams, "pause", pause)
        frames = (await streamed(await resumed(async_client))).split("\n\n")
        texts = [f.split('"assistantText": "')[1].split('"')[0] for f in frames if "snapshot" in f]
        assert texts == ["", "half", "half whole"]
        assert '"content": "half whole"' in frames[-3]
        assert frames[-2].startswith(f"id: {turn.pk}:end\n") and "complete" in frames[-2]

    async def test_a_row_whose_process_is_dead_ends(
        self, async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = await conversation()
        fields = {"role": "assistant", "provider": "openai", "model": "m-1", "owner": "far/1/x"}
        turn = await Turn.objects.acreate(
            conversation=row, status="running", heartbeat_at=timezone.now(), **fields
        )

        async def pause(seconds: float) -> None:
            await Turn.objects.filter(pk=turn.pk).aupdate(heartbeat_at=None)

        monkeypatch.setattr(event_streams, "pause", pause)
        raw = await streamed(await resumed(async_client))
        assert "The server stopped before the answer was complete." in raw.split("\n\n")[-2]

    async def test_a_conversation_that_is_deleted_meanwhile_ends_the_stream(
        self, async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = await conversation()
        fields = {"role": "assistant", "provider": "openai", "model": "m-1", "owner": "far/1/x"}
        await Turn.objects.acreate(
            conversation=row, status="running", heartbeat_at=timezone.now(), **fields
        )

        async def pause(seconds: float) -> None:
            await Conversation.objects.all().adelete()

        monkeypatch.setattr(event_streams, "pause", pause)
        raw = await streamed(await resumed(async_client))
        assert "The conversation was deleted." in raw.split("\n\n")[-2]

    async def test_a_later_answer_of_another_process_precedes_the_one_in_memory(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        scripted([TextDelta("mine")])
        mine = events_of(await streamed(await ask(accept=SSE)))
        row = await Conversation.objects.aget()
        fields: dict[str, Any] = {"role": "assistant", "provider": "openai", "model": "m-1"}
        parts = [{"type": "text", "text": "theirs"}]
        fields |= {"parts": parts, "created_at": timezone.now()}
        await sync_to_async(append)(conversation_id=row.pk, **fields)
        raw = await streamed(await resumed(async_client, mine[0][0]))
        assert "theirs" in raw and "mine" not in raw


class TestRefusals:
    async def test_an_unknown_conversation(self, async_client: AsyncClient) -> None:
        for path in ("nothing", "a%20b", "x" * 300):
            answer = await resumed(async_client, path=f"/conversations/{path}/events")
            assert (answer.status_code, answer.json()) == (404, {"error": "not_found"})

    async def test_a_conversation_without_an_answer(self, async_client: AsyncClient) -> None:
        await conversation()
        assert (await resumed(async_client)).status_code == 204

    async def test_a_conversation_that_was_deleted(
        self, scripted: Scripted, ask: Ask, async_client: AsyncClient
    ) -> None:
        scripted([TextDelta("x")])
        await streamed(await ask(accept=SSE))
        await Conversation.objects.all().adelete()
        assert (await resumed(async_client)).status_code == 404

    async def test_another_method(self, async_client: AsyncClient) -> None:
        answer = await async_client.post("/conversations/c1/events", {}, "application/json")
        assert answer.status_code == 405

    async def test_only_its_owner_reads_it_running_and_after(
        self, scripted: Scripted, configure: Callable[..., None]
    ) -> None:
        configure(require_login=True)
        clients = {}
        for name in ("ada", "bob"):
            clients[name] = AsyncClient()
            await clients[name].aforce_login(await User.objects.acreate(username=name))
        gate = Gate()
        scripted([gate, TextDelta("for Ada")])
        body = {"provider": "openai", "model": "m-1", "conversationId": "c1", "message": "Why?"}
        await clients["ada"].post("/chat", body, content_type="application/json")
        await reached(gate.reached)
        assert (await resumed(clients["bob"])).status_code == 404
        gate.open.set()
        await finished()
        assert (await resumed(clients["bob"])).status_code == 404
        assert text(await rest(clients["ada"])) == "for Ada"
        await forget()
        assert (await resumed(clients["bob"])).status_code == 404
