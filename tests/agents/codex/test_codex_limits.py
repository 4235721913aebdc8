"""What Codex relays of a model server that is not to be trusted; the binary is the real one."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from apps.agents.events import ThreadNamed, TurnFinished
from apps.agents.loop import run
from apps.agents.providers.codex.provider import CodexProvider
from apps.agents.providers.codex.server import server_at
from tests.agents.cast import TOOLS, Heard, asked, hear
from tests.agents.rigs.codex import CodexWorld
from tests.stand_ins.openai_scripts import Script, Stall
from tests.stand_ins.responses_scripts import call, end, say, think

pytestmark = pytest.mark.door

PROVIDER = CodexProvider()
Turn = Callable[..., None]


@pytest.mark.door
async def test_text_past_its_limit_ends_the_answer_and_the_turn_at_codex(
    codex: CodexWorld,
) -> None:
    codex.api.scripts["wordy"] = Script([[*say("x" * 3_000_000, 100_000)[:-1], Stall()]])
    heard = await hear(PROVIDER, asked("wordy"))
    assert heard.failure.code == "PROVIDER_ERROR"
    assert "CODEINFO_MAX_ANSWER_BYTES (1000000)" in heard.failure.message
    assert len(heard.text) == 1_000_000
    assert await asyncio.to_thread(codex.api.asked[-1].client_left.wait, 30)


async def test_thinking_past_its_limit_ends_the_answer(codex: CodexWorld, configure: Turn) -> None:
    configure(max_reasoning_bytes=1_000)
    codex.api.scripts["thinker"] = Script([[*think("hm " * 1_000), *say("So."), *end()]])
    heard = await hear(PROVIDER, asked("thinker"))
    assert "CODEINFO_MAX_REASONING_BYTES (1000)" in heard.failure.message
    assert len(heard.reasoning) <= 1_000


async def test_the_time_of_an_answer_is_over_for_codex_too(
    codex: CodexWorld, configure: Turn
) -> None:
    configure(max_answer_seconds=3.0)
    heard = await hear(PROVIDER, asked("stall-middle"))
    assert "CODEINFO_MAX_ANSWER_SECONDS (3)" in heard.failure.message


async def test_calls_past_their_limit_end_the_answer(codex: CodexWorld, configure: Turn) -> None:
    configure(max_tool_calls=2)
    codex.offer(TOOLS)
    calls = [step for _ in range(9) for step in call("VectorSearch", {"query": "retry"})]
    codex.api.scripts["crowd"] = Script([[*calls, *end()], [*say("Done."), *end()]])
    heard = Heard([event async for event in run(PROVIDER, asked("crowd"), 3)])
    assert "CODEINFO_MAX_TOOL_CALLS (2)" in heard.failure.message
    assert sum(event.kind == "tool_started" for event in heard.events) == 6


@pytest.mark.door
async def test_a_line_past_its_limit_ends_the_answer_and_the_next_question_is_answered(
    codex: CodexWorld, configure: Turn
) -> None:
    configure(max_frame_bytes=100_000)
    codex.api.scripts["long"] = Script([[*say("Half"), *say("x" * 3_000_000, 3_000_000), Stall()]])
    heard = await hear(PROVIDER, asked("long"))
    assert heard.text.startswith("Half")
    assert heard.failure.code == "PROVIDER_ERROR"
    assert "CODEINFO_MAX_FRAME_BYTES (100000)" in heard.failure.message
    assert isinstance((await hear(PROVIDER, asked("plain"))).end, TurnFinished)


async def test_a_thread_of_any_length_goes_on(codex: CodexWorld, configure: Turn) -> None:
    configure(max_frame_bytes=20_000)
    codex.api.scripts["wordy"] = Script([[*say("word " * 50_000, 1_000), *end()]])
    first = await hear(PROVIDER, asked("wordy"))
    assert isinstance(first.end, TurnFinished), first.end
    thread = next(e.thread_id for e in first.events if isinstance(e, ThreadNamed))
    for _ in range(2):
        again = await hear(PROVIDER, replace(asked("wordy"), flags={"threadId": thread}))
        assert again.events[1] == ThreadNamed(thread)
        assert isinstance(again.end, TurnFinished), again.end


async def test_its_process_does_not_run_in_the_folder_where_codeinfo_was_started(
    codex: CodexWorld,
) -> None:
    assert await PROVIDER.models()
    client = server_at(codex.home)._client
    assert client is not None
    assert client._proc is not None
    assert os.readlink(f"/proc/{client._proc.pid}/cwd") == str(Path("/"))
