"""The lifecycle of Codex's process, threads and turns: resumed, lost, stopped, silent, killed."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.agents.events import ChatEvent, TextDelta, ThreadNamed, TurnFailed, TurnFinished, Warned
from apps.agents.loop import run
from apps.agents.messages import Message
from apps.agents.providers.base import ModelRequest, Rights
from apps.agents.providers.codex.provider import CodexProvider
from apps.agents.providers.codex.server import server_at
from tests.agents.fakes import TOOLS, chat_request, record
from tests.agents.rigs.codex import CodexBackend
from tests.ports import free_ports
from tests.stand_ins.openai_scripts import Script, Status
from tests.stand_ins.responses_scripts import HALF
from tests.stand_ins.responses_server import write_config

pytestmark = pytest.mark.door

PROVIDER = CodexProvider()


def on_thread(thread_id: str, model: str, **flags: Any) -> ModelRequest:
    return replace(chat_request(model), flags={"threadId": thread_id, **flags})


async def thread_of(model: str) -> str:
    """Return the id of a thread with one answered message."""
    recorded = await record(PROVIDER, chat_request(model))
    assert isinstance(recorded.end, TurnFinished), recorded.end
    return next(e.thread_id for e in recorded.events if isinstance(e, ThreadNamed))


def input_lines(codex: CodexBackend) -> list[str]:
    """Return the items of the last request to the API as "role: text" lines."""
    texts = []
    for item in codex.api.requests[-1].body["input"]:
        for part in item.get("content") or ():
            texts.append(f"{item.get('role')}: {part['text'][:40]}")
    return texts


def pid_of(codex: CodexBackend) -> int:
    client = server_at(codex.home).client
    assert client is not None
    assert client._proc is not None
    return client._proc.pid


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def kill(codex: CodexBackend) -> None:
    os.kill(pid_of(codex), signal.SIGKILL)


def close(codex: CodexBackend) -> None:
    server_at(codex.home).close()


async def until_half(events: Any) -> list[ChatEvent]:
    recorded: list[ChatEvent] = []
    while "".join(e.text for e in recorded if isinstance(e, TextDelta)) != HALF:
        recorded.append(await anext(events))
    return recorded


async def test_files_of_codex_are_private(codex: CodexBackend) -> None:
    """Those that its programs write in a working folder, too."""
    await thread_of("plain")
    assert "Umask:\t0077\n" in status_of(pid_of(codex))


async def test_a_resumed_thread_receives_only_the_new_message(
    codex: CodexBackend,
) -> None:
    thread = await thread_of("plain")
    recorded = await record(PROVIDER, on_thread(thread, "think"))
    assert [e.thread_id for e in recorded.events if isinstance(e, ThreadNamed)] == [thread]
    lines = input_lines(codex)
    assert [line for line in lines if line.startswith("assistant")] == [
        "assistant: Hello, this is a plain answer.\n\n- one\n- "
    ]
    assert sum("Where is the retry?" in line for line in lines) == 2
    assert sum("You are CodeInfo" in line for line in lines) == 1, (
        "sent once, when the thread starts"
    )


async def test_a_thread_resumes_after_a_restart_of_its_process(codex: CodexBackend) -> None:
    thread = await thread_of("plain")
    kill(codex)
    recorded = await record(PROVIDER, on_thread(thread, "plain"))
    assert isinstance(recorded.end, TurnFinished)
    assert recorded.events[1] == ThreadNamed(thread)


async def test_our_secrets_do_not_reach_its_process(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_at(codex.home).close()
    for name in ("CODEINFO_LMSTUDIO_API_TOKEN", "CELERY_BROKER_URL", "MONGO_URI"):
        monkeypatch.setenv(name, "canary")
    await thread_of("plain")
    environment = environment_of(pid_of(codex))
    assert b"CODEX_HOME" in environment
    assert b"canary" not in environment


def has_web_search(codex: CodexBackend) -> bool:
    return "web_search" in [tool["type"] for tool in codex.api.requests[-1].body["tools"]]


async def test_changed_flags_apply_from_the_next_turn(codex: CodexBackend) -> None:
    thread = await thread_of("plain")
    flags = {"modelReasoningEffort": "low", "webSearchEnabled": True, "sandboxMode": "read-only"}
    await record(PROVIDER, on_thread(thread, "plain", **flags))
    assert codex.api.requests[-1].body["reasoning"]["effort"] == "low"
    assert has_web_search(codex)
    await record(PROVIDER, on_thread(thread, "plain"))
    assert codex.api.requests[-1].body["reasoning"]["effort"] == "high"
    assert not has_web_search(codex)


@pytest.mark.fault("Instructions hidden in code")
async def test_a_thread_starts_without_web_search_and_without_network(codex: CodexBackend) -> None:
    await thread_of("plain")
    assert not has_web_search(codex)
    assert "Network access is restricted" in str(codex.api.requests[-1].body["input"])


async def test_flags_stored_with_a_conversation_still_apply(codex: CodexBackend) -> None:
    stored = {"webSearchEnabled": True, "networkAccessEnabled": True}
    await record(PROVIDER, replace(chat_request("plain"), flags=stored))
    assert has_web_search(codex)
    assert "Network access is enabled" in str(codex.api.requests[-1].body["input"])


async def test_codex_has_our_tools_and_none_that_access_this_host(
    codex: CodexBackend,
) -> None:
    codex.set_tools(TOOLS)
    await record(PROVIDER, replace(chat_request("plain"), repositories=("acme", "beta")))
    tools = codex.api.requests[-1].body["tools"]
    named = {tool.get("name") for tool in tools}
    own = next(tool for tool in tools if tool.get("name") == "mcp__codeinfo")
    assert {one["name"] for one in own["tools"]} == {tool.name for tool in TOOLS}
    assert not named & {"shell", "exec_command", "apply_patch", "view_image", "spawn_agent"}
    assert codex.mcp.queries[-1] == {
        "full": ["1"],
        "tool": [tool.name for tool in TOOLS],
        "repository": ["acme", "beta"],
    }


async def test_an_agent_has_its_own_home_and_settings(codex: CodexBackend, tmp_path: Path) -> None:
    home, folder = codex.home / "agents" / "reviewer", tmp_path / "work"
    folder.mkdir(exist_ok=True)
    own = {"model": "plain", "model_reasoning_effort": "low", "features.shell_tool": False}
    rights = Rights(write=True)
    request = replace(chat_request("", ()), home=home, folder=folder, rights=rights, config=own)
    recorded = await record(PROVIDER, request)
    server_at(home).close()
    assert isinstance(recorded.end, TurnFinished)
    body = codex.api.requests[-1].body
    assert (body["model"], body["reasoning"]["effort"]) == ("plain", "low")
    assert f"<cwd>{folder}</cwd>" in str(body["input"])
    assert not has_web_search(codex), "an agent that does not mention web search has none"


@pytest.mark.parametrize("lost", ["01a201f2-88f0-7d03-bb67-a2be8c66926b", "nonsense"])
async def test_a_missing_thread_is_replaced_with_a_warning(codex: CodexBackend, lost: str) -> None:
    recorded = await record(PROVIDER, on_thread(lost, "plain"))
    named = next(e for e in recorded.events if isinstance(e, ThreadNamed))
    assert named.thread_id != lost
    assert any("starts a new thread" in e.message for e in recorded.events if isinstance(e, Warned))
    assert isinstance(recorded.end, TurnFinished)


@pytest.mark.parametrize("flags", [{}, {"threadId": "nonsense"}], ids=["none", "lost"])
async def test_a_new_thread_is_sent_the_earlier_messages_as_text(
    codex: CodexBackend, flags: dict[str, str]
) -> None:
    system, newest = chat_request("plain").messages
    earlier = Message("user", "x" * 250_000), Message("user", "Who?"), Message("assistant", "Ada.")
    messages = (system, *earlier, newest)
    request = replace(chat_request("plain"), messages=messages, flags=flags)
    assert isinstance((await record(PROVIDER, request)).end, TurnFinished)
    sent = codex.api.requests[-1].body["input"][-1]["content"][-1]["text"]
    assert sent.startswith("The conversation so far:\n\nuser: Who?\n\nassistant: Ada.\n\n")
    assert sent.endswith(f"\n\n{newest.text}")


async def test_a_killed_process_keeps_the_text_so_far_and_restarts(
    codex: CodexBackend,
) -> None:
    async with aclosing(run(PROVIDER, chat_request("stall-middle"), 5)) as events:
        await until_half(events)
        kill(codex)
        rest = [event async for event in events]
    assert isinstance(rest[-1], TurnFailed)
    assert (rest[-1].code, rest[-1].retryable) == ("PROVIDER_UNAVAILABLE", True)
    assert isinstance((await record(PROVIDER, chat_request("plain"))).end, TurnFinished)


@pytest.mark.parametrize(("end", "is_lost"), [(kill, True), (close, False)])
async def test_a_process_that_the_server_ends_is_not_logged_as_lost(
    codex: CodexBackend, caplog: pytest.LogCaptureFixture, end: Callable[..., None], is_lost: bool
) -> None:
    async with aclosing(run(PROVIDER, chat_request("stall-middle"), 5)) as events:
        await until_half(events)
        await asyncio.to_thread(end, codex)
        rest = [event async for event in events]
    assert isinstance(rest[-1], TurnFailed)
    assert ("process was lost" in caplog.text) == is_lost


async def test_stop_does_not_wait_for_silent_answers(codex: CodexBackend) -> None:
    """With more silent answers than the event loop's executor has threads."""
    streams = [run(PROVIDER, chat_request("stall-middle"), 5) for _ in range(8)]
    for events in streams:
        await until_half(events)
    exchanges = codex.api.requests[-len(streams) :]
    await streams[-1].aclose()
    assert exchanges[-1].client_left.wait(30)
    assert not any(exchange.client_left.is_set() for exchange in exchanges[:-1])
    await asyncio.gather(*(events.aclose() for events in streams))
    assert all(exchange.client_left.wait(30) for exchange in exchanges)


async def test_a_retry_by_codex_is_a_warning_and_not_a_failure(
    codex: CodexBackend, configure: Callable[..., None], tmp_path: Any
) -> None:
    home = tmp_path / "patient"
    write_config(home, codex.api.url, retries=1)
    configure(codex_home=home)
    try:
        recorded = await record(PROVIDER, chat_request("cut-middle"))
    finally:
        server_at(home).close()
    warned = [e.message for e in recorded.events if isinstance(e, Warned)]
    assert len(warned) == 1
    assert "1/1" in warned[0]
    assert isinstance(recorded.end, TurnFailed)
    assert recorded.text.startswith(HALF)


async def test_an_unreachable_model_server_ends_the_turn_in_spite_of_reconnects(
    codex: CodexBackend, configure: Callable[..., None], tmp_path: Any
) -> None:
    home = tmp_path / "unreachable"
    write_config(home, f"http://127.0.0.1:{free_ports()}/v1", retries=9)
    # Codex reports reconnects at once, after 5 seconds, after 15 and after 35.
    configure(codex_home=home, first_byte_seconds=11.0, idle_seconds=11.0)
    try:
        recorded = await record(PROVIDER, chat_request("plain"))
    finally:
        server_at(home).close()
    warned = [e.message for e in recorded.events if isinstance(e, Warned)]
    assert recorded.failure.code == "PROVIDER_TIMEOUT"
    assert len(warned) <= 2, "a reconnect does not renew the time"
    assert "Connection failed" in warned[-1]
    assert recorded.failure.message.endswith(warned[-1])


async def test_a_refused_request_is_shown_as_the_sentence_of_the_model_server(
    codex: CodexBackend,
) -> None:
    codex.api.scripts["refused"] = Script([[Status(400, "The prompt is not valid.")]])
    recorded = await record(PROVIDER, chat_request("refused"))
    assert recorded.failure.message == "Codex failed: The prompt is not valid."


async def test_invalid_codex_settings_are_reported_with_their_position(
    codex: CodexBackend, configure: Callable[..., None], tmp_path: Any
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_text("model = [")
    configure(codex_home=tmp_path / "broken")
    state = await PROVIDER.availability()
    server_at(tmp_path / "broken").close()
    assert not state.available
    assert "config.toml:1:10" in (state.reason or "")
