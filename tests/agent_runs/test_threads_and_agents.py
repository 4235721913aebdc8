"""What a provider tells beside its answer, and what an agent brings to a question."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from apps.agents.events import TextDelta, ThreadNamed, Warned
from apps.agents.prompts import SYSTEM_PROMPT
from apps.conversations import rows, runner
from apps.conversations.consumers.html import view_of
from apps.conversations.models import Conversation, Turn
from apps.conversations.renderers import html, sse
from apps.conversations.renderers.json import RunFrames
from apps.conversations.stream import RunLog, Snapshot
from apps.conversations.types import AgentSettings
from apps.core.errors import InvalidInput
from apps.index.types import Area
from tests.support.chat import answers, conversation, ended, question
from tests.support.scripted import ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]


async def finished_run(**changes: Any) -> RunLog:
    log = await runner.start(question(**changes))
    await ended(log)
    return log


def final_of(log: RunLog) -> dict[str, Any]:
    return list(RunFrames(log).events(log.events))[-1]


def streamed(log: RunLog) -> list[dict[str, Any]]:
    return [one for e in log.events for one in sse.messages(e, log.transcript)]


class TestThread:
    async def test_is_stored_with_the_other_flags_and_passed_to_the_provider(
        self, scripted: Scripted
    ) -> None:
        provider = scripted([ThreadNamed("t-7"), TextDelta("Because.")])
        await finished_run(flags={"sandboxMode": "read-only"})
        assert (await Conversation.objects.aget()).flags == {
            "sandboxMode": "read-only",
            "threadId": "t-7",
        }
        await finished_run(flags={"sandboxMode": "workspace-write"})
        assert provider.requests[-1].flags == {
            "sandboxMode": "workspace-write",
            "threadId": "t-7",
        }
        assert provider.requests[-1].conversation_id == "c1"

    async def test_is_stored_before_later_events(self, scripted: Scripted) -> None:
        provider = scripted([ThreadNamed("t-7"), TextDelta("Be"), RuntimeError("broke")])
        await finished_run()
        assert provider.closed == 1
        assert (await Conversation.objects.aget()).flags == {"threadId": "t-7"}

    async def test_is_sent_over_sse_and_the_websocket(self, scripted: Scripted) -> None:
        scripted([ThreadNamed("t-7"), TextDelta("Because.")])
        log = await finished_run()
        assert final_of(log)["threadId"] == "t-7"
        sent_frames = streamed(log)
        assert sent_frames[0] == {"type": "thread", "threadId": "t-7"}
        assert sent_frames[-1] == {"type": "complete", "threadId": "t-7"}
        assert (await answers())[0].parts == [{"type": "text", "text": "Because."}]

    async def test_is_not_sent_if_there_is_none(self, scripted: Scripted) -> None:
        scripted([TextDelta("Because.")])
        log = await finished_run()
        assert "threadId" not in final_of(log)
        assert streamed(log)[-1] == {"type": "complete"}

    async def test_is_stored_after_a_locked_database(
        self, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = iter([OperationalError("database is locked")] * 2)
        name_thread = rows.name_thread

        def locked(*args: Any) -> None:
            if error := next(failures, None):
                raise error
            name_thread(*args)

        monkeypatch.setattr(rows, "name_thread", locked)
        monkeypatch.setattr(runner, "SAVE_PAUSES", (0, 0))
        scripted([ThreadNamed("t-7"), TextDelta("Because.")])
        await finished_run()
        assert (await Conversation.objects.aget()).flags == {"threadId": "t-7"}


class TestWarning:
    script = (Warned("Reconnecting... 1/3"), Warned("Reconnecting... 1/3"), TextDelta("Because."))

    async def test_is_a_separate_frame_and_not_part_of_the_answer(self, scripted: Scripted) -> None:
        scripted(self.script)
        log = await finished_run()
        frames = list(RunFrames(log).events(log.events))
        assert [frame["type"] for frame in frames] == [
            *("stream_warning", "stream_warning"),
            *("assistant_delta", "turn_final"),
        ]
        assert frames[0]["message"] == "Reconnecting... 1/3"
        assert frames[0]["inflightId"] == log.inflight_id
        assert [one["type"] for one in streamed(log)] == [
            *("warning", "warning"),
            *("token", "final", "complete"),
        ]
        (turn,) = await answers()
        assert (turn.status, turn.parts) == ("ok", [{"type": "text", "text": "Because."}])

    async def test_is_a_chip_on_the_page_while_the_run_lasts(self, scripted: Scripted) -> None:
        scripted(self.script)
        log = await finished_run()
        live = html.LiveExchange()
        assert "Reconnecting" not in live.whole(view_of(log, Snapshot(0, [])))
        now = log.snapshot()
        (chip,) = [one for one in live.changes(view_of(log, now)) if "Reconnecting... 1/3" in one]
        assert chip.count("Reconnecting") == 1
        assert not [one for one in live.changes(view_of(log, now)) if "Reconnecting" in one]
        assert html.LiveExchange().whole(view_of(log, now)).count("Reconnecting") == 1


class TestAgent:
    coder = AgentSettings(
        name="coder",
        system_prompt="You are the coder.",
        repositories=("acme", "tools"),
        home=Path("/homes/coder"),
        folder=Path("/work"),
        config={"model": "m-9"},
        command={"name": "tidy", "stepIndex": 1, "totalSteps": 2},
    )

    async def test_replaces_the_system_prompt_and_passes_its_settings(
        self, scripted: Scripted
    ) -> None:
        provider = scripted([TextDelta("Done.")])
        for _ in range(2):
            log = await finished_run(agent=self.coder)
        for request in provider.requests:
            systems = [m.text for m in request.messages if m.role == "system"]
            assert systems == ["You are the coder."]
            assert (request.home, request.folder) == (self.coder.home, self.coder.folder)
            assert request.config == {"model": "m-9"}
            assert request.repositories == ("acme", "tools")
        turns = Turn.objects.filter(conversation="c1")
        assert {turn.command["name"] async for turn in turns} == {"tidy"}
        assert not [t async for t in turns if "You are" in str(t.parts)]
        assert (await Conversation.objects.aget()).agent_name == "coder"
        snapshot = RunFrames(log).snapshot(log.snapshot())
        assert snapshot["inflight"]["command"] == self.coder.command
        assert "Step 1 of 2" in html.exchange(view_of(log, log.snapshot()))

    async def test_without_a_prompt_uses_the_provider_prompt(self, scripted: Scripted) -> None:
        provider = scripted([TextDelta("Done.")])
        await finished_run(agent=AgentSettings("quiet"))
        assert provider.requests[0].messages[0].text == SYSTEM_PROMPT

    async def test_is_the_only_one_to_continue_its_conversations(self, scripted: Scripted) -> None:
        scripted([TextDelta("Done.")])
        await finished_run(agent=self.coder)
        for other in (AgentSettings("painter"), None):
            with pytest.raises(InvalidInput) as refused:
                await finished_run(agent=other)
            assert refused.value.code == "AGENT_MISMATCH"
        await conversation(id="plain")
        with pytest.raises(InvalidInput):
            await finished_run(conversation_id="plain", agent=self.coder)
        assert await Turn.objects.acount() == 2

    def test_is_limited_to_its_repositories_by_any_request(self) -> None:
        assert question(agent=self.coder, areas=(Area("acme"),)).repositories == ("acme",)
        assert question(agent=self.coder, areas=(Area("secret"),)).repositories == ("acme", "tools")
        assert question(areas=(Area("acme"),)).repositories == ("acme",)
        assert question().repositories == ()


async def test_a_provider_may_define_its_system_prompt(scripted: Scripted) -> None:
    class Told(ScriptedProvider):
        system_prompt = "You are told otherwise."

    provider = scripted([TextDelta("Because.")], kind=Told)
    await finished_run()
    assert provider.requests[0].messages[0].text == "You are told otherwise."
