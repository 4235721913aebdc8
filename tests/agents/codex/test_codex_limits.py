"""Limits on what Codex relays from an untrusted model server, with the real binary."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from apps.agents.events import ThreadNamed, ToolStarted, TurnFinished
from apps.agents.loop import run
from apps.agents.providers.codex.provider import CodexProvider
from apps.agents.providers.codex.server import server_at
from tests.agents.fakes import TOOLS, RecordedAnswer, chat_request, record
from tests.agents.rigs.codex import CodexBackend
from tests.stand_ins.openai_scripts import Script, Stall
from tests.stand_ins.responses_scripts import call, end, say, think

pytestmark = pytest.mark.door

PROVIDER = CodexProvider()
Configure = Callable[..., None]


@pytest.mark.door
async def test_text_past_its_limit_ends_the_answer_and_the_turn_at_codex(
    codex: CodexBackend,
) -> None:
    codex.api.scripts["wordy"] = Script([[*say("x" * 3_000_000, 100_000)[:-1], Stall()]])
    recorded = await record(PROVIDER, chat_request("wordy"))
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "1000000 bytes of text" in recorded.failure.message
    assert len(recorded.text) == 1_000_000
    assert await asyncio.to_thread(codex.api.requests[-1].client_left.wait, 30)


async def test_thinking_past_its_limit_ends_the_answer(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_REASONING_BYTES", 1_000)
    codex.api.scripts["thinker"] = Script([[*think("hm " * 1_000), *say("So."), *end()]])
    recorded = await record(PROVIDER, chat_request("thinker"))
    assert "1000 bytes of reasoning" in recorded.failure.message
    assert len(recorded.reasoning) <= 1_000


async def test_the_time_limit_of_an_answer_applies_to_codex(
    codex: CodexBackend, configure: Configure
) -> None:
    configure(max_answer_seconds=3.0)
    recorded = await record(PROVIDER, chat_request("stall-middle"))
    assert "CODEINFO_MAX_ANSWER_SECONDS (3)" in recorded.failure.message


async def test_calls_past_their_limit_end_the_answer(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.agents.limits.MAX_TOOL_CALLS", 2)
    codex.set_tools(TOOLS)
    calls = [step for _ in range(9) for step in call("VectorSearch", {"query": "retry"})]
    codex.api.scripts["crowd"] = Script([[*calls, *end()], [*say("Done."), *end()]])
    recorded = RecordedAnswer([event async for event in run(PROVIDER, chat_request("crowd"), 3)])
    assert "the limit of 6 tool calls" in recorded.failure.message
    assert sum(isinstance(event, ToolStarted) for event in recorded.events) == 6


@pytest.mark.fault("The model server fails")
@pytest.mark.door
async def test_a_line_past_its_limit_ends_the_answer_but_not_the_next_one(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_FRAME_BYTES", 100_000)
    codex.api.scripts["long"] = Script([[*say("Half"), *say("x" * 3_000_000, 3_000_000), Stall()]])
    recorded = await record(PROVIDER, chat_request("long"))
    assert recorded.text.startswith("Half")
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "than 1600000 bytes" in recorded.failure.message
    assert isinstance((await record(PROVIDER, chat_request("plain"))).end, TurnFinished)


async def test_a_thread_of_any_length_resumes(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_FRAME_BYTES", 20_000)
    codex.api.scripts["wordy"] = Script([[*say("word " * 50_000, 1_000), *end()]])
    first = await record(PROVIDER, chat_request("wordy"))
    assert isinstance(first.end, TurnFinished), first.end
    thread = next(e.thread_id for e in first.events if isinstance(e, ThreadNamed))
    for _ in range(2):
        resumed = await record(PROVIDER, replace(chat_request("wordy"), flags={"threadId": thread}))
        assert resumed.events[1] == ThreadNamed(thread)
        assert isinstance(resumed.end, TurnFinished), resumed.end


async def test_its_process_does_not_run_in_the_folder_where_codeinfo_was_started(
    codex: CodexBackend,
) -> None:
    assert await PROVIDER.models()
    client = server_at(codex.home).client
    assert client is not None
    assert client._proc is not None
    assert os.readlink(f"/proc/{client._proc.pid}/cwd") == str(Path("/"))
