"""Runs: one live per conversation, one terminal event, one saved answer, whatever happens."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.agents.events import (
    ReasoningDelta,
    Terminal,
    TextDelta,
    ToolCallRequested,
    TurnFailed,
    TurnFinished,
    TurnStopped,
    UsageReported,
)
from apps.agents.messages import ToolCall, Usage
from apps.conversations import recovery, rows, runner, services
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.types import usage_wire
from apps.core.errors import Conflict, InvalidInput, Unavailable
from tests.support.chat import answers, conversation, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider, Stubborn
from tests.support.zombies import zombie

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]


def terminals(log: RunLog) -> list[Any]:
    return [e for e in log.events if isinstance(e, Terminal)]


async def test_an_answer_is_logged_in_order_and_saved_as_it_was_streamed(
    scripted: Scripted,
) -> None:
    usage = UsageReported(Usage(input_tokens=3, output_tokens=4))
    scripted([ReasoningDelta("hm"), TextDelta("Be"), TextDelta("cause."), usage])
    log = await runner.start(question())
    await ended(log)
    assert log.seq == 5
    assert isinstance(log.events[-1], TurnFinished)
    (turn,) = await answers()
    assert turn.status == "ok"
    assert turn.parts == log.transcript.parts
    assert [part["type"] for part in turn.parts] == ["reasoning", "text"]
    assert turn.usage == {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
    assert turn.timing["totalTimeSec"] > 0
    assert live_runs.all() == []


async def test_the_model_hears_what_was_said_once_even_when_it_is_said_again(
    scripted: Scripted,
) -> None:
    provider = scripted([TextDelta("Because.")])
    for _ in range(3):
        await ended(await runner.start(question()))
    sent_messages = [(m.role, m.text) for m in provider.requests[-1].messages]
    assert sent_messages[0][0] == "system"
    assert sent_messages[1:] == [
        ("user", "Why?"),
        ("assistant", "Because."),
        ("user", "Why?"),
        ("assistant", "Because."),
        ("user", "Why?"),
    ]


async def test_times_within_a_conversation_strictly_increase(scripted: Scripted) -> None:
    scripted([TextDelta("x")])
    for _ in range(3):
        await ended(await runner.start(question()))
    times = [t.created_at async for t in Turn.objects.order_by("created_at")]
    assert len(times) == len(set(times)) == 6
    assert all(time.microsecond % 1000 == 0 for time in times)
    roles = [t.role async for t in Turn.objects.order_by("created_at")]
    assert roles == ["user", "assistant"] * 3
    last = await Conversation.objects.aget(pk="c1")
    assert last.last_message_at >= times[-1]


async def test_of_fifty_racing_questions_one_runs(scripted: Scripted) -> None:
    gate = Gate()
    provider = scripted([gate, TextDelta("won")])
    starts = (runner.start(question(message=f"q{n}")) for n in range(50))
    results = await asyncio.gather(*starts, return_exceptions=True)
    won = [one for one in results if isinstance(one, RunLog)]
    lost = [one for one in results if isinstance(one, Conflict)]
    assert (len(won), len(lost)) == (1, 49)
    assert {error.code for error in lost} == {"RUN_IN_PROGRESS"}
    assert await Turn.objects.acount() == 2
    gate.open.set()
    await ended(won[0])
    assert len(provider.requests) == 1
    assert await Turn.objects.filter(role="user").acount() == 1


@pytest.mark.fault("A question is refused")
async def test_a_second_run_waits_for_nobody_and_changes_nothing(scripted: Scripted) -> None:
    gate = Gate()
    scripted([gate, TextDelta("x")])
    log = await runner.start(question())
    before = await Conversation.objects.aget(pk="c1")
    with pytest.raises(Conflict, match="already has an active run"):
        await runner.start(question(model="m-2", flags={"a": 1}))
    after = await Conversation.objects.aget(pk="c1")
    assert (after.model, after.flags) == (before.model, before.flags)
    assert after.last_message_at == before.last_message_at
    gate.open.set()
    await ended(log)
    await ended(await runner.start(question()))


async def test_an_archived_conversation_takes_no_question(scripted: Scripted) -> None:
    scripted()
    await conversation(archived_at=timezone.now())
    with pytest.raises(Conflict) as refused:
        await runner.start(question())
    assert refused.value.code == "CONVERSATION_ARCHIVED"
    assert not await Turn.objects.aexists()


async def test_nothing_is_created_for_a_provider_that_is_away_or_unknown(
    scripted: Scripted,
) -> None:
    provider = scripted()
    provider.offered = type(provider.offered)(available=False, reason="No key is set.")
    with pytest.raises(Unavailable, match="No key is set") as away:
        await runner.start(question())
    assert away.value.code == "PROVIDER_UNAVAILABLE"
    assert away.value.details == {"provider": "openai"}
    with pytest.raises(InvalidInput) as unknown:
        await runner.start(question(provider="parrot"))
    assert unknown.value.code == "UNSUPPORTED_PROVIDER"
    assert not await Conversation.objects.aexists()


@pytest.mark.parametrize("before", [[], [ReasoningDelta("hm")], [TextDelta("half ")]])
async def test_stop_keeps_what_was_said(scripted: Scripted, before: list[Any]) -> None:
    gate = Gate()
    provider = scripted([*before, gate, TextDelta("never")])
    log = await runner.start(question())
    await reached(gate.reached)
    assert await runner.cancel("c1", log.inflight_id)
    await ended(log)
    assert [type(t) for t in terminals(log)] == [TurnStopped]
    (turn,) = await answers()
    assert turn.status == "stopped"
    assert [part["text"] for part in turn.parts] == [event.text for event in before]
    assert provider.closed == 1
    assert not await runner.cancel("c1")


async def test_stop_before_the_first_event_leaves_a_stopped_turn(scripted: Scripted) -> None:
    scripted([TextDelta("x")])
    log = await runner.start(question())
    runner.stop(log)
    await ended(log)
    (turn,) = await answers()
    assert turn.status in ("stopped", "ok")
    assert len(terminals(log)) == 1


async def test_stop_during_a_tool_closes_the_tool(scripted: Scripted) -> None:
    gate = Gate()
    call = ToolCallRequested(ToolCall("t1", "NoSuchTool", {}))
    scripted([call], [TextDelta("so "), gate])
    log = await runner.start(question())
    await reached(gate.reached)
    await runner.cancel("c1")
    await ended(log)
    (turn,) = await answers()
    assert [part["type"] for part in turn.parts] == ["tool", "text"]
    assert turn.parts[0]["stage"] == "error"
    assert turn.status == "stopped"


async def test_stop_does_not_wait_for_a_provider_that_will_not_listen(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "STOP_SECONDS", 0.05)
    gate = Gate()
    scripted([gate], kind=Stubborn)
    log = await runner.start(question())
    await reached(gate.reached)
    await runner.cancel("c1")
    await ended(log)
    gate.open.set()
    (turn,) = await answers()
    assert (turn.status, turn.parts[0]["text"]) == ("stopped", "begun")
    assert isinstance(log.events[-1], TurnStopped)


async def test_a_stop_asked_for_by_another_process_is_heard(scripted: Scripted) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    log = await runner.start(question())
    await reached(gate.reached)
    await Turn.objects.filter(pk=log.turn_id).aupdate(cancel_requested=True)
    await ended(log)
    (turn,) = await answers()
    assert (turn.status, turn.cancel_requested) == ("stopped", False)


async def test_a_stop_reaches_a_run_of_another_process_through_its_row() -> None:
    await conversation()
    running = await Turn.objects.acreate(
        conversation_id="c1",
        role="assistant",
        status="running",
        inflight_id="i-1",
        owner="elsewhere/7/abc",
        heartbeat_at=timezone.now(),
    )
    assert not await runner.cancel("c1", "i-2")
    assert await runner.cancel("c1", "i-1")
    await running.arefresh_from_db()
    assert running.cancel_requested


async def test_only_the_run_that_is_named_is_stopped(scripted: Scripted) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    log = await runner.start(question(inflight_id="i-1"))
    await reached(gate.reached)
    assert not await runner.cancel("c1", "i-2")
    assert not await runner.cancel("c2")
    gate.open.set()
    await ended(log)
    assert (await answers())[0].status == "ok"


async def test_a_provider_error_is_typed_and_keeps_the_text(scripted: Scripted) -> None:
    scripted([TextDelta("half"), Unavailable("It hung up.", code="PROVIDER_ERROR")])
    log = await runner.start(question())
    await ended(log)
    (turn,) = await answers()
    assert turn.status == "failed"
    assert turn.error == {"code": "PROVIDER_ERROR", "message": "It hung up."}
    assert turn.parts[0]["text"] == "half"


async def test_a_bug_ends_the_run_as_failed_and_is_logged(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    scripted([TextDelta("half"), KeyError("secret thought")])
    log = await runner.start(question())
    await ended(log)
    (end,) = terminals(log)
    assert (end.code, "secret" in end.message) == ("INTERNAL", False)
    assert (await answers())[0].error["code"] == "INTERNAL"
    assert "Traceback" in caplog.text
    await ended(await runner.start(question()))


async def test_shutdown_ends_live_runs_as_interrupted(scripted: Scripted) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    log = await runner.start(question())
    await reached(gate.reached)
    await runner.shutdown()
    (turn,) = await answers()
    assert (turn.status, turn.error["code"]) == ("failed", "INTERRUPTED")
    assert turn.parts[0]["text"] == "half"
    assert isinstance(terminals(log)[0], TurnFailed)
    assert len(terminals(log)) == 1


async def test_a_run_outlives_the_caller_that_is_cancelled(scripted: Scripted) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    starting = asyncio.create_task(runner.start(question()))
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await reached(gate.reached)
    log = live_runs.of("c1")
    assert log is not None
    gate.open.set()
    await ended(log)
    assert [turn.status for turn in await answers()] == ["ok"]


async def test_parts_are_in_the_row_while_the_answer_is_made(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, saved = Gate(), asyncio.Event()
    loop, keep_alive = asyncio.get_running_loop(), rows.keep_alive

    def keep(*args: Any) -> bool:
        result = keep_alive(*args)
        loop.call_soon_threadsafe(saved.set)
        return result

    monkeypatch.setattr(rows, "keep_alive", keep)
    scripted([TextDelta("half"), gate])
    log = await runner.start(question())
    await reached(gate.reached)
    await reached(saved)
    (turn,) = await answers()
    assert (turn.status, turn.parts) == ("running", [{"type": "text", "text": "half"}])
    gate.open.set()
    await ended(log)


@pytest.mark.fault("The database is locked")
async def test_a_database_that_is_locked_for_a_while_loses_nothing(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([OperationalError("database is locked")] * 3)
    save = rows.finish_turn

    def locked(*args: Any) -> None:
        if error := next(failures, None):
            raise error
        save(*args)

    monkeypatch.setattr(rows, "finish_turn", locked)
    monkeypatch.setattr(runner, "SAVE_PAUSES", (0, 0, 0))
    scripted([TextDelta("all of it")])
    log = await runner.start(question())
    await ended(log)
    assert isinstance(terminals(log)[0], TurnFinished)
    assert (await answers())[0].parts[0]["text"] == "all of it"


async def test_an_end_that_cannot_be_saved_says_so(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*args: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(rows, "finish_turn", locked)
    monkeypatch.setattr(runner, "SAVE_PAUSES", (0,))
    scripted([TextDelta("lost?")])
    log = await runner.start(question())
    await ended(log)
    assert terminals(log)[0].code == "DATABASE_UNAVAILABLE"


async def test_an_end_that_breaks_the_saving_itself_is_an_end_all_the_same(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise TypeError("cannot be stored")

    monkeypatch.setattr(rows, "finish_turn", broken)
    scripted([TextDelta("x")])
    log = await runner.start(question())
    await ended(log)
    assert [end.code for end in terminals(log)] == ["INTERNAL"]
    assert live_runs.all() == []


class TestCosts:
    """What was reported by then is kept, however the answer ends."""

    first_round = (
        UsageReported(Usage(100, 10)),
        ToolCallRequested(ToolCall("t1", "ListIngestedRepositories")),
    )

    async def test_of_a_stopped_answer(self, scripted: Scripted) -> None:
        gate = Gate()
        scripted(self.first_round, [UsageReported(Usage(200, 3)), TextDelta("half"), gate])
        log = await runner.start(question())
        await reached(gate.reached)
        runner.stop(log)
        await self.saved(log, "stopped", {"inputTokens": 300, "outputTokens": 13})

    async def test_of_a_failed_answer(self, scripted: Scripted) -> None:
        cut = Unavailable("The connection was cut.", code="PROVIDER_ERROR")
        scripted(self.first_round, [TextDelta("half"), cut])
        log = await runner.start(question())
        await self.saved(log, "failed", {"inputTokens": 100, "outputTokens": 10})

    async def test_of_an_answer_that_broke(self, scripted: Scripted) -> None:
        scripted(self.first_round, [TextDelta("half"), RuntimeError("a bug")])
        log = await runner.start(question())
        await self.saved(log, "failed", {"inputTokens": 100, "outputTokens": 10})

    async def test_of_an_answer_that_the_end_of_the_server_cuts(self, scripted: Scripted) -> None:
        gate = Gate()
        scripted(self.first_round, [gate])
        log = await runner.start(question())
        await reached(gate.reached)
        await runner.shutdown()
        await self.saved(log, "failed", {"inputTokens": 100, "outputTokens": 10})

    async def saved(self, log: RunLog, status: str, counts: dict[str, int]) -> None:
        await ended(log)
        (turn,) = await answers()
        assert turn.status == status
        assert turn.usage == {**counts, "totalTokens": sum(counts.values())}
        assert turn.timing["totalTimeSec"] > 0
        (end,) = terminals(log)
        assert usage_wire(end.usage) == turn.usage


class TestRecovery:
    async def running(self, **fields: Any) -> Turn:
        await conversation()
        started = {"type": "tool", "callId": "t", "name": "VectorSearch", "parameters": {}}
        started |= {"stage": "started", "result": None, "error": None, "seconds": None}
        defaults = {
            "conversation_id": "c1",
            "role": "assistant",
            "status": "running",
            "parts": [{"type": "text", "text": "half"}, started],
            "owner": recovery.owner(),
            "heartbeat_at": timezone.now(),
        }
        return await Turn.objects.acreate(**{**defaults, **fields})

    async def recovered(self, turn: Turn) -> bool:
        await asyncio.to_thread(recovery.recover)
        await turn.arefresh_from_db()
        if turn.status == "running":
            return False
        assert (turn.status, turn.error["code"]) == ("failed", "INTERRUPTED")
        assert turn.parts[0]["text"] == "half"
        assert turn.parts[1]["stage"] == "error"
        assert turn.parts[1]["error"]["message"] == "The answer ended during this call."
        return True

    async def test_a_run_of_a_dead_process_is_marked_at_start(self) -> None:
        host = recovery.owner().split("/")[0]
        assert await self.recovered(await self.running(owner=f"{host}/4194305/abc"))

    @pytest.mark.door
    async def test_a_run_of_a_process_that_is_dead_and_not_buried_is_marked(self) -> None:
        host = recovery.owner().split("/")[0]
        with zombie() as pid:
            assert await self.recovered(await self.running(owner=f"{host}/{pid}/abc"))

    async def test_a_run_of_an_earlier_process_with_our_number_is_marked(self) -> None:
        host, pid, _ = recovery.owner().split("/")
        assert await self.recovered(await self.running(owner=f"{host}/{pid}/earlier"))

    async def test_a_still_heart_is_marked_wherever_it_beat(self) -> None:
        old = timezone.now() - timedelta(seconds=31)
        assert await self.recovered(await self.running(owner="other/1/x", heartbeat_at=old))

    async def test_a_live_run_of_another_process_is_left_alone(self) -> None:
        assert not await self.recovered(await self.running(owner="other/1/x"))
        assert not await runner_can_start()

    async def test_a_question_finds_the_lock_of_a_dead_run_open(self, scripted: Scripted) -> None:
        scripted([TextDelta("new")])
        old = timezone.now() - timedelta(seconds=31)
        await self.running(owner="other/1/x", heartbeat_at=old)
        await ended(await runner.start(question()))
        assert [turn.status for turn in await answers()] == ["failed", "ok"]


async def runner_can_start() -> bool:
    try:
        await runner.start(question(provider="builtin"))
    except Conflict:
        return False
    return True


async def test_deleting_a_conversation_ends_its_run(scripted: Scripted) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    log = await runner.start(question())
    await reached(gate.reached)
    await asyncio.to_thread(services.delete, ["c1"])
    await ended(log)
    assert not await Turn.objects.aexists()


async def test_the_log_of_a_run_tells_no_words(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="codeinfo")
    scripted([TextDelta("classified")])
    await ended(await runner.start(question(message="hush-hush")))
    records = [r for r in caplog.records if r.message.startswith("chat run")]
    assert [r.message for r in records] == ["chat run started", "chat run finished"]
    logged = " ".join(str(vars(record)) for record in caplog.records)
    assert "hush-hush" not in logged
    assert "classified" not in logged
