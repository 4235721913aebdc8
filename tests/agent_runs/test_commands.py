"""Commands of agents: steps one after the other, the conversation held from first to last."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from apps.agent_runs import commands
from apps.agent_runs.commands import Execution
from apps.agents.events import TextDelta
from apps.conversations import leases, recovery, rows, runner, services
from apps.conversations.models import CommandRun, Conversation, Turn
from apps.conversations.types import AgentSettings, StartTurn
from apps.core.errors import Conflict, Unavailable
from tests.support.chat import PATIENCE, answers, question, reached
from tests.support.scripted import Gate, ScriptedProvider

Scripted = Callable[..., ScriptedProvider]


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(commands.shutdown(), PATIENCE)


def steps(*texts: str, conversation_id: str = "c1") -> list[StartTurn]:
    command_run = str(uuid.uuid4())

    def step(number: int, text: str) -> StartTurn:
        tag = {"name": "check", "stepIndex": number, "totalSteps": len(texts)}
        agent = AgentSettings("reviewer", "Be brief.", command=tag, command_run=command_run)
        return question(message=text, conversation_id=conversation_id, agent=agent)

    return [step(number, text) for number, text in enumerate(texts, 1)]


async def over(execution: Execution) -> CommandRun:
    await asyncio.wait_for(execution.done.wait(), PATIENCE)
    return await CommandRun.objects.aget(pk=execution.id)


async def started(*texts: str) -> Execution:
    return await commands.start(steps(*texts))


def reconnecting() -> Unavailable:
    return Unavailable("Reconnecting... 2/5", code="PROVIDER_ERROR")


async def test_steps_are_turns_in_order_with_the_commands_name_and_number(
    scripted: Scripted,
) -> None:
    model = scripted([TextDelta("first")], [TextDelta("second")])
    row = await over(await started("One?", "Two?"))
    assert (row.status, row.step) == ("ok", 2)
    turns = [turn async for turn in Turn.objects.order_by("created_at")]
    assert [(turn.role, turn.command["stepIndex"]) for turn in turns if turn.command] == [
        ("user", 1),
        ("assistant", 1),
        ("user", 2),
        ("assistant", 2),
    ]
    assert turns[0].command == {"name": "check", "stepIndex": 1, "totalSteps": 2}
    assert [m.text for m in model.requests[1].messages] == ["Be brief.", "One?", "first", "Two?"]
    conversation = await Conversation.objects.aget()
    assert (conversation.agent_name, conversation.title) == ("reviewer", "One?")


async def test_no_other_run_starts_between_two_steps(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    between, never_cancelled = asyncio.Event(), asyncio.Event()
    begin = runner.start

    async def slowly(request: StartTurn) -> Any:
        if request.command and request.command["stepIndex"] == 2:
            between.set()
            await never_cancelled.wait()
        return await begin(request)

    monkeypatch.setattr(runner, "start", slowly)
    scripted()
    execution = await started("One?", "Two?")
    await reached(between)
    assert [turn.status for turn in await answers()] == ["ok"]
    for other in (question(agent=AgentSettings("reviewer")), steps("Mine?")[0]):
        with pytest.raises(Conflict) as refused:
            await begin(other)
        assert refused.value.code == "RUN_IN_PROGRESS"
    never_cancelled.set()
    assert (await over(execution)).status == "ok"
    assert len(await answers()) == 2


async def test_a_conversation_with_a_run_refuses_a_command(scripted: Scripted) -> None:
    gate = Gate()
    scripted([gate])
    await runner.start(question(agent=AgentSettings("reviewer")))
    with pytest.raises(Conflict) as refused:
        await started("One?", "Two?")
    assert refused.value.code == "RUN_IN_PROGRESS"
    assert await CommandRun.objects.acount() == 0


async def test_exactly_one_of_several_concurrent_starts_succeeds(scripted: Scripted) -> None:
    scripted([Gate()])
    agent = AgentSettings("reviewer")
    starts = [commands.start(steps("One?", "Two?")) for _ in range(3)]
    starts += [runner.start(question(agent=agent)) for _ in range(3)]
    ended = await asyncio.gather(*starts, return_exceptions=True)
    refused = [one for one in ended if isinstance(one, Conflict)]
    assert [one.code for one in refused] == ["RUN_IN_PROGRESS"] * 5
    assert await Turn.objects.filter(status="running").acount() == 1


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_stop_ends_the_step_and_starts_no_other(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    gate = Gate()
    model = scripted([TextDelta("half"), gate])
    execution = await started("One?", "Two?")
    await reached(gate.reached)
    if elsewhere:
        # As another process would: by the rows alone.
        assert await asyncio.to_thread(rows.request_cancel, "c1")
    else:
        assert await runner.cancel("c1", execution.log.inflight_id)
    row = await over(execution)
    assert (row.status, row.step) == ("stopped", 1)
    (turn,) = await answers()
    assert (turn.status, turn.command) == (
        "stopped",
        {"name": "check", "stepIndex": 1, "totalSteps": 2},
    )
    assert len(model.requests) == 1
    assert not await runner.cancel("c1")


async def test_stop_between_two_steps_is_noted_on_the_last_answer(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = runner.start

    async def stopped_before(request: StartTurn) -> Any:
        if request.command and request.command["stepIndex"] == 2:
            assert await asyncio.to_thread(rows.request_cancel, "c1")
        return await begin(request)

    monkeypatch.setattr(runner, "start", stopped_before)
    scripted()
    row = await over(await started("One?", "Two?"))
    assert row.status == "stopped"
    (turn,) = await answers()
    assert turn.status == "ok"
    assert turn.command["ended"] == leases.STOPPED


async def test_a_failed_step_ends_the_command(scripted: Scripted) -> None:
    model = scripted([TextDelta("half"), Unavailable("It fell over.", code="PROVIDER_ERROR")])
    row = await over(await started("One?", "Two?"))
    assert (row.status, row.step) == ("failed", 1)
    assert [turn.status for turn in await answers()] == ["failed"]
    assert len(model.requests) == 1


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that is always there already; how long it was waited for."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(commands, "pause", pause)
    return waited


async def test_a_lost_connection_is_retried_and_the_command_continues(
    scripted: Scripted, pauses: list[float]
) -> None:
    scripted([reconnecting()], [reconnecting()], [TextDelta("now")], [TextDelta("two")])
    row = await over(await started("One?", "Two?"))
    assert row.status == "ok"
    assert pauses == [0.5, 1.0]
    assert [(turn.status, turn.command["stepIndex"]) for turn in await answers()] == [
        ("failed", 1),
        ("failed", 1),
        ("ok", 1),
        ("ok", 2),
    ]


async def test_a_step_is_attempted_three_times(scripted: Scripted, pauses: list[float]) -> None:
    model = scripted([reconnecting()])
    row = await over(await started("One?", "Two?"))
    assert (row.status, pauses, len(model.requests)) == ("failed", [0.5, 1.0], 3)


async def test_stop_does_not_wait_for_the_next_attempt(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = asyncio.Event()

    async def never(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(commands, "pause", never)
    model = scripted([reconnecting()])
    execution = await started("One?", "Two?")
    await reached(waiting)
    execution.stop()
    assert (await over(execution)).status == "failed"
    assert len(model.requests) == 1


async def test_a_shutdown_is_noted_and_releases_the_lock(scripted: Scripted) -> None:
    gate = Gate()
    scripted([TextDelta("half"), gate])
    execution = await started("One?", "Two?")
    await reached(gate.reached)
    await asyncio.wait_for(commands.shutdown(), PATIENCE)
    assert (await over(execution)).status == "failed"
    (turn,) = await answers()
    assert (turn.status, turn.error["code"]) == ("failed", "INTERRUPTED")


def abandoned(step: int, turn: str, owner: str = "elsewhere/1/x", **fields: Any) -> CommandRun:
    """A command whose process has died: the hold and the answers it left."""
    conversation = Conversation.objects.create(
        id="c1", provider="openai", model="m-1", agent_name="reviewer"
    )
    long_ago = conversation.created_at - 2 * leases.STALE
    Conversation.objects.filter(pk="c1").update(last_message_at=long_ago)
    for number in range(1, step + 1):
        Turn.objects.create(
            conversation=conversation,
            role="assistant",
            status=turn if number == step else "ok",
            owner=owner,
            heartbeat_at=long_ago,
            created_at=long_ago + number * services.MILLISECOND,
            command={"name": "check", "stepIndex": number, "totalSteps": 2},
        )
    return CommandRun.objects.create(
        pk=uuid.uuid4(),
        conversation=conversation,
        name="check",
        step=step,
        steps=2,
        owner=owner,
        begun_at=long_ago,
        **fields,
    )


@pytest.mark.parametrize("at_start", [True, False])
@pytest.mark.parametrize(("turn", "ended"), [("running", "failed"), ("ok", "ok")])
def test_a_killed_process_leaves_neither_lock_nor_half_told_command(
    turn: str, ended: str, at_start: bool
) -> None:
    row = abandoned(1, turn)
    recovery.recover() if at_start else recovery.recover_stale("c1")
    row.refresh_from_db()
    assert row.status == "failed"
    answer = Turn.objects.get()
    assert answer.status == ended
    note = answer.error or answer.command["ended"]
    assert note["code"] == "INTERRUPTED"
    started = rows.start_turn(question(agent=AgentSettings("reviewer")), recovery.owner())
    assert started.answer.pk


def test_commands_of_live_processes_are_not_recovered() -> None:
    row = abandoned(1, "ok", owner=recovery.owner())
    Conversation.objects.filter(pk="c1").update(last_message_at=services.now_ms())
    recovery.recover()
    row.refresh_from_db()
    assert row.status == "running"
    with pytest.raises(Conflict) as refused:
        rows.start_turn(question(agent=AgentSettings("reviewer")), recovery.owner())
    assert refused.value.code == "RUN_IN_PROGRESS"
    assert not Turn.objects.filter(role="user").exists()


async def test_a_deleted_conversation_ends_its_command_and_stays_deleted(
    scripted: Scripted,
) -> None:
    gate = Gate()
    scripted([gate, TextDelta("done")])
    execution = await started("One?", "Two?")
    await reached(gate.reached)
    await asyncio.to_thread(services.delete, ["c1"])
    gate.open.set()
    await asyncio.wait_for(execution.done.wait(), PATIENCE)
    assert await Conversation.objects.acount() == 0
