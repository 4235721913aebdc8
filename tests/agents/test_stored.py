"""The stored turn equals the shown turn, for every provider."""

from collections.abc import Sequence
from typing import Any

import pytest

from apps.agents.events import (
    ReasoningDelta,
    Terminal,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnStopped,
)
from apps.conversations import runner
from apps.conversations.models import Turn
from apps.conversations.parts import Part, content, reasoning
from apps.conversations.renderers import sse
from apps.conversations.renderers.json import RunFrames
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.types import StartTurn
from tests.agents.fakes import QUESTION
from tests.agents.rigs import RIGS
from tests.agents.rigs.base import Backend, Rig, Scenario
from tests.agents.rigs.cases import cases, each_rig
from tests.support.chat import ended
from tests.support.chat import nothing_left_running as nothing_left_running

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

STATUS = {"finished": "ok", "PROVIDER_ERROR": "failed", "PROVIDER_TIMEOUT": "failed"}


@pytest.fixture(autouse=True)
def tools_of_the_cast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = request.node.callspec.params.get("scenario")
    tools_offered = scenario.tools_offered if scenario else RIGS[0].scenarios[0].tools_offered
    monkeypatch.setattr(runner, "toolset", lambda *limits: tools_offered)


async def begun(rig: Rig, scenario: Scenario) -> RunLog:
    return await runner.start(StartTurn("c1", QUESTION, rig.provider, scenario.model))


async def stored(log: RunLog) -> Turn:
    return await Turn.objects.aget(pk=log.turn_id)


@cases(
    lambda rig, scenario: (
        (not rig.slow or scenario.end == "finished" or scenario.text)
        # One provider with many tokens is enough.
        and (scenario.kind != "10,000 tokens" or rig.provider == "openai")
    )
)
async def test_a_turn_is_stored_as_shown(rig: Rig, backend: Backend, scenario: Scenario) -> None:
    log = await begun(rig, scenario)
    await ended(log)
    turn = await stored(log)
    assert turn.status == STATUS[scenario.end]
    assert turn.parts == log.transcript.parts
    shown = log.events
    assert [type(event) for event in shown if isinstance(event, Terminal)] == [type(shown[-1])]
    assert content(turn.parts) == joined(shown, TextDelta)
    assert reasoning(turn.parts) == joined(shown, ReasoningDelta)
    # In the order of their starts. Those of Codex run at once, and end in any order.
    assert tools(turn.parts) == [e.call.id for e in shown if isinstance(e, ToolStarted)]
    ends = [e.result.call.id for e in shown if isinstance(e, ToolFinished)]
    assert sorted(tools(turn.parts)) == sorted(ends)
    assert_wires_agree(log, turn)


def assert_wires_agree(log: RunLog, turn: Turn) -> None:
    """Assert that both event streams have the same text, in order, and one end."""
    frames = list(RunFrames(log).events(log.events))
    deltas = [f["delta"] for f in frames if f["type"] == "assistant_delta"]
    finals = [f["status"] for f in frames if f["type"] == "turn_final"]
    assert ("".join(deltas), finals) == (content(turn.parts), [turn.status])
    messages = [m for e in log.events for m in sse.messages(e, log.transcript)]
    tokens = [m["content"] for m in messages if m["type"] == "token"]
    assert "".join(tokens) == content(turn.parts)
    assert [m["type"] for m in messages].count(
        "error" if turn.status == "failed" else "complete"
    ) == 1


def joined(events: Sequence[Any], kind: type[TextDelta] | type[ReasoningDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def tools(parts: Sequence[Part]) -> list[str]:
    return [part["callId"] for part in parts if part["type"] == "tool"]


@each_rig(lambda rig: "silence in the middle" not in rig.not_applicable)
async def test_a_stopped_turn_is_stored_up_to_the_stop(rig: Rig, backend: Backend) -> None:
    """Stop an answer after each of its events."""
    scenario, count = rig.scenario("silence in the middle"), 0
    whole = False
    while not whole:
        log = await begun(rig, scenario)
        count += 1
        await log.wait(count - 1)
        runner.stop(log)
        await ended(log)
        turn = await stored(log)
        assert isinstance(log.end, TurnStopped)
        assert (turn.status, turn.parts) == ("stopped", log.transcript.parts)
        assert str(scenario.text).startswith(content(turn.parts))
        assert backend.idle()
        whole = content(turn.parts) == scenario.text
    assert live_runs.all() == []
