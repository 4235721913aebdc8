"""A database that is away: its file cannot be opened. Chat goes on, in this process alone."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import AsyncClient

from apps.agents.events import TextDelta, ThreadNamed, ToolCallRequested, TurnFinished
from apps.agents.messages import ToolCall
from apps.conversations import memory, rows, runner
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.types import StartTurn
from apps.core.errors import Conflict
from apps.core.system import disk
from tests.support.chat import conversation, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = [
    pytest.mark.usefixtures("nothing_left_running"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's file is what is taken away"),
]

Scripted = Callable[..., ScriptedProvider]
Move = Callable[[str], Awaitable[None]]


async def unsaved_history(**changes: Any) -> RunLog:
    log = await runner.start(question(**changes))
    await ended(log)
    return log


@pytest.mark.fault("The database is unavailable")
async def test_a_turn_streams_and_a_follow_up_knows_the_first(
    scripted: Scripted, move: Move
) -> None:
    provider = scripted(
        [ThreadNamed("t-1"), TextDelta("First.")], [TextDelta("Second.")], [TextDelta("Third.")]
    )
    await move("away")
    log = await unsaved_history(message="One?", flags={"sandboxMode": "read-only"})
    assert isinstance(log.end, TurnFinished)
    assert not log.stored
    await unsaved_history(message="Two?")
    sent_messages = [(m.role, m.text) for m in provider.requests[-1].messages if m.role != "system"]
    assert sent_messages == [("user", "One?"), ("assistant", "First."), ("user", "Two?")]
    assert provider.requests[-1].flags == {"sandboxMode": "read-only", "threadId": "t-1"}
    assert [turn.status for turn in memory.turns("c1")] == ["ok"] * 4

    await move("back")
    assert (await unsaved_history(message="Three?")).stored
    assert memory.turns("c1") == []
    stored = [turn.parts[0]["text"] async for turn in Turn.objects.order_by("created_at")]
    assert stored == ["Three?", "Third."], "what was said meanwhile is not written back"


@pytest.mark.fault("The database is unavailable")
async def test_one_run_at_a_time_wherever_it_is_kept(scripted: Scripted, move: Move) -> None:
    gates = [Gate(), Gate()]
    scripted([gates[0], TextDelta("a")], [gates[1], TextDelta("b")])
    first = await runner.start(question())
    await move("away")
    with pytest.raises(Conflict):
        await runner.start(question())
    await move("back")
    gates[0].open.set()
    await ended(first)

    await move("away")
    second = await runner.start(question())
    await reached(gates[1].reached)
    for where in ("away", "back"):
        await move(where)
        with pytest.raises(Conflict) as refused:
            await runner.start(question())
        assert refused.value.code == "RUN_IN_PROGRESS"
    gates[1].open.set()
    await ended(second)
    assert await Turn.objects.acount() == 2


async def test_a_run_that_is_not_stored_can_be_stopped(scripted: Scripted, move: Move) -> None:
    gate = Gate()
    scripted([TextDelta("half "), gate])
    await move("away")
    log = await runner.start(question())
    await reached(gate.reached)
    assert await runner.cancel("c1")
    await ended(log)
    (_, answer) = memory.turns("c1")
    assert (answer.status, answer.parts) == ("stopped", [{"type": "text", "text": "half "}])


async def test_a_tool_that_needs_the_database_says_so_and_the_answer_goes_on(
    scripted: Scripted, move: Move
) -> None:
    scripted([ToolCallRequested(ToolCall("t", "ListIngestedRepositories"))], [TextDelta("So.")])
    await move("away")
    log = await unsaved_history()
    assert isinstance(log.end, TurnFinished)
    (tool, _) = log.transcript.parts
    assert tool["error"]["code"] == "DATABASE_UNAVAILABLE"


@pytest.mark.fault("The database is unavailable")
async def test_lists_answer_503(async_client: AsyncClient, scripted: Scripted, move: Move) -> None:
    scripted()
    await conversation()
    await move("away")
    for path in ("/conversations", "/conversations/c1/turns"):
        answer = await async_client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "DATABASE_UNAVAILABLE")
        assert answer.headers["Retry-After"]
    refused = await async_client.post("/conversations/c1/archive", content_type="application/json")
    assert refused.status_code == 503


async def test_the_chat_api_streams_without_the_database(
    scripted: Scripted, ask: Callable[..., Any], move: Move
) -> None:
    scripted([TextDelta("Because.")])
    await move("away")
    answer = await ask("text/event-stream")
    body = b"".join([part async for part in answer.streaming_content]).decode()
    assert '"type": "token", "content": "Because."' in body
    assert '"type": "complete"' in body


@pytest.mark.fault("The disk is full")
@pytest.mark.door
async def test_with_a_full_disk_a_conversation_goes_on_from_what_is_stored(
    async_client: AsyncClient, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    provider = scripted([TextDelta("First.")], [TextDelta("Second.")], [TextDelta("Third.")])
    assert (await unsaved_history(message="One?")).stored

    def refused(request: StartTurn, owner: str) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(rows, "start_turn", refused)
        patch.setattr(disk, "has_no_room", lambda: True)
        assert not (await unsaved_history(message="Two?")).stored
        assert not (await unsaved_history(message="Three?")).stored
        sent_messages = [m.text for m in provider.requests[-1].messages if m.role != "system"]
        assert sent_messages == ["One?", "First.", "Two?", "Second.", "Three?"]
        html = (await async_client.get("/chat?c=c1")).content.decode()
        assert SHOWN.search(html)
        assert "The disk is full" in html
        assert all(text in html for text in ("First.", "Second.", "Third."))
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert not SHOWN.search(html)
    assert await Turn.objects.acount() == 2


@pytest.mark.fault("The disk is full")
@pytest.mark.door
async def test_a_client_is_told_what_a_full_disk_does_not_store_and_can_read_it(
    async_client: AsyncClient,
    scripted: Scripted,
    ask: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    move: Move,
) -> None:
    scripted([TextDelta("First.")], [TextDelta("Second.")], [TextDelta("Third.")])

    def refused(request: StartTurn, owner: str) -> None:
        raise OperationalError("database or disk is full")

    async def read(query: str = "") -> Any:
        return (await async_client.get(f"/conversations/c1/turns{query}")).json()

    with monkeypatch.context() as patch:
        patch.setattr(rows, "start_turn", refused)
        patch.setattr(disk, "has_no_room", lambda: True)
        started = await ask()
        assert (started.status_code, started.json()["stored"]) == (202, False)
        assert (log := live_runs.of("c1"))
        await ended(log)
        streamed = await ask("text/event-stream")
        body = b"".join([part async for part in streamed.streaming_content]).decode()
        assert '"type": "warning", "message": "Not stored: the disk is full."' in body
        turns = (await read())["items"]
        assert [turn["content"] for turn in turns] == ["Second.", "Why?", "First.", "Why?"]
        assert {turn["stored"] for turn in turns} == {False}
        page = await read("?limit=3")
        assert page["items"] == turns[:3]
        assert (await read(f"?cursor={page['nextCursor']}"))["items"] == turns[3:]
    # There is room again, and nothing else was asked: this process still has them.
    assert (await read())["items"] == turns
    started = await ask()
    assert (started.status_code, started.json().get("stored", True)) == (202, True)


@pytest.mark.fault("The disk is full")
@pytest.mark.door
async def test_an_answer_under_way_when_the_disk_fills_is_kept_and_written_later(
    async_client: AsyncClient, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    gate = Gate()
    provider = scripted([TextDelta("First "), gate, TextDelta("half.")], [TextDelta("Second.")])
    log = await runner.start(question(message="One?"))
    await reached(gate.reached)

    def refused(*_: Any) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        for verb in ("start_turn", "finish_turn", "keep_alive"):
            patch.setattr(rows, verb, refused)
        patch.setattr(disk, "has_no_room", lambda: True)
        gate.open.set()
        await ended(log)
        assert isinstance(log.end, TurnFinished)
        assert log.transcript.warnings == ["Not stored yet: the disk is full."]
        turns = (await async_client.get("/conversations/c1/turns")).json()["items"]
        assert turns[0]["content"] == "First half."
        html = (await async_client.get("/chat?c=c1")).content.decode()
        assert "First half." in html
        assert "The disk is full" in html
        assert not (await unsaved_history(message="Two?")).stored
        sent_messages = [m.text for m in provider.requests[-1].messages if m.role != "system"]
        assert sent_messages == ["One?", "First half.", "Two?"]
    # There is room again: whoever looks finds the answer, and it is written.
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert "First half." in html
    answer = await Turn.objects.aget(role=Turn.Role.ASSISTANT)
    assert (answer.status, answer.parts) == ("ok", [{"type": "text", "text": "First half."}])


@pytest.mark.fault("The disk is full")
@pytest.mark.door
async def test_a_full_disk_that_has_room_again_holds_no_lock(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    scripted([TextDelta("First.")], [TextDelta("Second.")])

    def refused(*_: Any) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(rows, "finish_turn", refused)
        await unsaved_history(message="One?")
    assert (await unsaved_history(message="Two?")).stored
    stored = [turn.parts[0]["text"] async for turn in Turn.objects.order_by("created_at")]
    assert stored == ["One?", "First.", "Two?", "Second."]


async def test_a_locked_database_is_available(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    scripted([TextDelta("First.")])

    def refused(request: StartTurn, owner: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(rows, "start_turn", refused)
    with pytest.raises(OperationalError):
        await runner.start(question())


async def test_the_least_recent_conversation_is_discarded(
    scripted: Scripted, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MAX_CONVERSATIONS", 2)
    scripted()
    await move("away")
    for name in ("a", "b", "a", "c"):
        await unsaved_history(conversation_id=name)
    assert [bool(memory.turns(name)) for name in ("a", "b", "c")] == [True, False, True]
    await move("back")
    assert not await Conversation.objects.aexists()


SHOWN = re.compile(r'id="history-away" role="status"( hx-swap-oob="true")?><svg')


@pytest.mark.fault("The database is unavailable")
@pytest.mark.door
async def test_the_page_says_so_and_shows_what_this_process_remembers(
    async_client: AsyncClient, scripted: Scripted, move: Move
) -> None:
    scripted([TextDelta("Because **so**.")])
    await conversation(id="old")
    await move("away")
    sent = await async_client.post(
        "/ui/chat/send", {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
    )
    assert SHOWN.search(sent.content.decode())
    log = live_runs.of("c1")
    if log is not None:
        await ended(log)
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert SHOWN.search(html)
    assert "Why?" in html
    assert "<strong>so</strong>" in html
    assert "Bulk actions disabled (database disconnected)" in html
    listed = (await async_client.get("/ui/chat/sidebar")).content.decode()
    assert " data-away>" in listed
    assert "Conversation history unavailable" in listed
    assert "data-row " not in listed

    await move("back")
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert not SHOWN.search(html)
    assert "<strong>so</strong>" in html
    assert " data-away" not in (await async_client.get("/ui/chat/sidebar")).content.decode()
