"""The chat page's socket: fragments that bring any page to what a reload would show."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio
from channels.testing import WebsocketCommunicator
from django.db import OperationalError
from django.test import AsyncClient

from apps.agents.events import (
    ReasoningDelta,
    TextDelta,
    TextReclassified,
    ToolCallRequested,
)
from apps.agents.messages import ToolCall
from apps.conversations import rows, runner, services
from apps.conversations.consumers import html
from apps.conversations.models import Turn
from apps.conversations.stream import RunLog
from apps.core.concurrency.hub import hub
from codeinfo.asgi import application
from tests.conversations.pages import answered, page
from tests.conversations.tab import HEADERS, Tab
from tests.support.chat import PATIENCE, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
BAD_MESSAGES = ["", "nonsense", "[]", '{"turns": []}', '{"turns": {}}', '{"list": ""}', "null"]
ARTICLE = re.compile(r"<article .*?</article>", re.DOTALL)


@pytest_asyncio.fixture
async def tabs() -> AsyncIterator[Callable[..., Tab]]:
    opened: list[Tab] = []

    def make(**options: Any) -> Tab:
        opened.append(Tab(**options))
        return opened[-1]

    yield make
    for tab in opened:
        # One that failed has ended by itself; what is left of this test is cleared up all the same.
        with suppress(asyncio.CancelledError):
            await tab.socket.disconnect()


def article(html: str) -> str:
    """The one turn in some HTML, as it is once it stands in the page."""
    (found,) = ARTICLE.findall(html)
    return str(found).replace(' hx-swap-oob="true"', "")


async def running(scripted: Scripted, *script: Any) -> RunLog:
    scripted([*script])
    return await runner.start(question())


@pytest.mark.door
async def test_a_run_is_followed_to_an_end_that_equals_a_reload(
    tabs: Callable[..., Tab], scripted: Scripted, async_client: AsyncClient
) -> None:
    tab = tabs()
    await tab.open()
    await tab.until('id="send"')
    gate = Gate()
    log = await running(
        scripted,
        ReasoningDelta("I think **so**."),
        TextDelta("First *block*.\n\nSecond"),
        gate,
        TextDelta(" block.\n\n```py\nx = 1\n```"),
    )
    await tab.until("Processing")
    await reached(gate.reached)
    # The first message may have it already.
    if "<em>block</em>" not in tab.all:
        await tab.until("<em>block</em>")
    assert "data-stop" in tab.all
    gate.open.set()
    final = await tab.until('data-status="ok"')
    await ended(log)
    assert article(final) == article(await page(async_client))
    assert 'id="send"' in final
    assert "Answer complete, 0 citations" in final


@pytest.mark.door
async def test_text_that_was_reasoning_becomes_a_thought_on_the_page(
    tabs: Callable[..., Tab], scripted: Scripted, async_client: AsyncClient
) -> None:
    tab = tabs()
    await tab.open()
    await tab.until('id="send"')
    said, told = Gate(), Gate()
    log = await running(
        scripted,
        TextDelta("I **search**.\n\n"),
        said,
        TextReclassified(),
        TextDelta("It is *there*.\n\n"),
        told,
        TextDelta("Done."),
    )
    await reached(said.reached)
    await tab.until("<strong>search</strong>")
    said.open.set()
    await reached(told.reached)
    replaced = await tab.until("Thought process")
    assert article(replaced).index("Thought process") < article(replaced).index("search")
    told.open.set()
    final = await tab.until('data-status="ok"')
    await ended(log)
    assert article(final) == article(await page(async_client))


async def test_finished_blocks_are_sent_once(tabs: Callable[..., Tab], scripted: Scripted) -> None:
    tab = tabs()
    await tab.open()
    gates = [Gate() for _ in range(3)]
    script: list[Any] = [TextDelta("Start.\n\n")]
    for number, gate in enumerate(gates):
        script += [gate, TextDelta(f"Paragraph **{number}**.\n\n")]
    log = await running(scripted, *script)
    for number, gate in enumerate(gates):
        await reached(gate.reached)
        gate.open.set()
        await tab.until(f"<strong>{number}</strong>")
    live = "".join(m for m in tab.messages if 'data-status="ok"' not in m)
    for number in range(2):
        assert live.count(f"<strong>{number}</strong>") == 1
    await ended(log)


async def test_a_page_that_comes_in_the_middle_sees_all_of_it(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    gate = Gate()
    log = await running(
        scripted, ReasoningDelta("Hm."), TextDelta("Half of"), gate, TextDelta(" it.")
    )
    await reached(gate.reached)
    tab = tabs()
    await tab.open()
    whole = await tab.until("Processing")
    assert "Hm." in whole and "Half of" in whole and "data-stop" in whole
    assert whole.startswith('<div hx-swap-oob="beforeend:#turns">')
    gate.open.set()
    await tab.until("Half of it.")
    await ended(log)


async def test_a_reload_in_the_middle_has_its_turn_replaced_not_doubled(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    gate = Gate()
    log = await running(scripted, TextDelta("Half"), gate)
    await reached(gate.reached)
    tab = tabs()
    await tab.open(**{log.turn_id: "running"})
    whole = await tab.until("Processing")
    assert whole.startswith('<article hx-swap-oob="true"')
    gate.open.set()
    await ended(log)


@pytest.mark.fault("The reader leaves or reloads")
@pytest.mark.door
async def test_a_reconnect_brings_what_was_missed(
    tabs: Callable[..., Tab], scripted: Scripted, async_client: AsyncClient
) -> None:
    log = await running(scripted, TextDelta("One."))
    await ended(log)
    tab = tabs()
    await tab.open(**{log.turn_id: "running"})
    finished = await tab.until('data-status="ok"')
    assert article(finished) == article(await page(async_client))
    second = await runner.start(question(message="And then?"))
    await ended(second)
    other = tabs()
    await other.open(**{log.turn_id: "ok"})
    missed = await other.until('data-status="ok"')
    assert "And then?" in missed
    assert f"turn-{log.turn_id}" not in missed


async def test_a_page_that_lacks_nothing_is_sent_nothing_anew(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    turn = await answered({"type": "text", "text": "Yes."})
    tab = tabs()
    await tab.open(**{str(turn.pk): "ok"})
    assert "<article" not in await tab.until('id="send"')


async def test_a_page_is_not_sent_what_stands_above_its_first_turn(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    earlier, shown, missed = [await answered({"type": "text", "text": t}) for t in "abc"]
    tab = tabs()
    await tab.open(**{str(shown.pk): "ok"})
    await tab.until('id="send"')
    assert str(missed.pk) in tab.all
    assert str(earlier.pk) not in tab.all


async def test_a_run_that_ends_while_a_page_connects_is_shown_to_its_end(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    log = await running(scripted, TextDelta("Half"), gate)
    await reached(gate.reached)
    read = html.exchanges

    async def slow(conversation_id: str) -> Any:
        views = await read(conversation_id)
        gate.open.set()
        await ended(log)
        return views

    monkeypatch.setattr(html, "exchanges", slow)
    tab = tabs()
    await tab.open(**{log.turn_id: "running"})
    assert 'id="send"' in await tab.until('data-status="ok"')


async def test_a_run_that_begins_while_a_page_connects_is_followed_live(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "FOREIGN_SECONDS", 0)
    read, gate, logs = html.exchanges, Gate(), []

    async def slow(conversation_id: str) -> Any:
        logs.append(await running(scripted, TextDelta("Half"), gate, TextDelta(" and half.")))
        return await read(conversation_id)

    monkeypatch.setattr(html, "exchanges", slow)
    tab = tabs()
    await tab.open()
    await tab.until("Half")
    gate.open.set()
    await tab.until('data-status="ok"')
    await ended(logs[0])


async def test_a_run_of_another_process_appears_on_an_open_page(
    tabs: Callable[..., Tab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "FOREIGN_SECONDS", 0)
    shown = await answered({"type": "text", "text": "Before."})
    tab = tabs()
    await tab.open(**{str(shown.pk): "ok"})
    await tab.until('id="send"')
    # Another process writes the rows, and its relay sends a notice.
    turn = await answered({"type": "text", "text": "Half"}, status="running")
    hub.notify_here("conversation:c1")
    assert 'data-status="running"' in await tab.until("Half")
    await Turn.objects.filter(pk=turn.pk).aupdate(
        status="ok", parts=[{"type": "text", "text": "Half and half."}]
    )
    assert 'data-status="ok"' in await tab.until("Half and half.")


async def test_an_answer_whose_conversation_was_deleted_leaves_the_page(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    tab, gate = tabs(), Gate()
    await tab.open()
    log = await running(scripted, TextDelta("Half"), gate)
    await tab.until("Half")
    await asyncio.to_thread(services.delete, ["c1"])
    removal = await tab.until('hx-swap-oob="delete"')
    assert f'id="turn-{log.turn_id}"' in removal and 'id="send"' in removal


async def test_an_end_that_could_not_be_saved_is_shown_as_such(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*args: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(rows, "finish_turn", locked)
    monkeypatch.setattr(runner, "SAVE_PAUSES", ())
    tab = tabs()
    await tab.open()
    # The page follows by now: a run that is over before that leaves nothing but its row.
    await tab.until('id="send"')
    await running(scripted, TextDelta("All of it."))
    final = await tab.until('data-status="failed"')
    assert "All of it." in final and "DATABASE_UNAVAILABLE" in final and 'id="send"' in final


async def test_an_end_that_was_not_saved_is_shown_to_a_page_that_was_slow_to_look(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*args: Any) -> None:
        raise OperationalError("database is locked")

    looking, over, look = asyncio.Event(), asyncio.Event(), html.exchanges

    async def slow(conversation_id: str) -> Any:
        looking.set()
        await over.wait()
        return await look(conversation_id)

    monkeypatch.setattr(html, "exchanges", slow)
    monkeypatch.setattr(rows, "finish_turn", locked)
    monkeypatch.setattr(runner, "SAVE_PAUSES", ())
    tab = tabs()
    await tab.open()
    await reached(looking)
    await ended(await running(scripted, TextDelta("All of it.")))
    over.set()
    final = await tab.until('data-status="failed"')
    assert "All of it." in final and "DATABASE_UNAVAILABLE" in final


async def test_a_page_whose_turns_cannot_be_read_is_told_to_come_back(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def locked(conversation_id: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(html, "exchanges", locked)
    tab = tabs()
    await tab.open()
    closed = await tab.socket.receive_output(timeout=PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1011)


async def test_many_changes_at_once_fetch_the_list_once(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "SIDEBAR_SECONDS", 0)
    tab = tabs()
    await tab.open()
    await tab.until('id="send"')
    for number in range(100):
        services.changed(f"elsewhere-{number}")
    await tab.until('id="pulse"')
    # Its beginning and its end are changes too.
    log = await running(scripted, TextDelta("Yes."))
    await tab.until('data-status="ok"')
    await ended(log)
    assert sum('id="pulse"' in message for message in tab.messages) <= 3


async def test_stop_in_one_tab_is_seen_in_both(
    tabs: Callable[..., Tab], scripted: Scripted, async_client: AsyncClient
) -> None:
    both = [tabs(), tabs()]
    for tab in both:
        await tab.open()
    gate = Gate()
    log = await running(scripted, TextDelta("Half"), gate)
    await reached(gate.reached)
    for tab in both:
        await tab.until("Half")
    await async_client.post("/ui/chat/stop", {"c": "c1"})
    for tab in both:
        final = await tab.until('data-status="stopped"')
        assert "Half" in final and "Generation stopped" in final
    await ended(log)


async def test_a_failure_keeps_what_was_said(tabs: Callable[..., Tab], scripted: Scripted) -> None:
    tab = tabs()
    await tab.open()
    log = await running(scripted, TextDelta("Half"), RuntimeError("boom"))
    final = await tab.until('data-status="failed"')
    assert "Half" in final and "data-resend" in final
    await ended(log)


async def test_a_tool_row_runs_and_then_tells(tabs: Callable[..., Tab], scripted: Scripted) -> None:
    tab = tabs()
    await tab.open()
    call = ToolCallRequested(ToolCall("t1", "VectorSearch", {"query": "timeouts"}))
    scripted([TextDelta("I look."), call], [TextDelta("Nothing there.")])
    log = await runner.start(question())
    final = await tab.until('data-status="ok"')
    # Nothing is ingested here: the tool says so, and the answer goes on.
    assert "INGEST_REQUIRED" in final and "Nothing there." in final
    assert final.index("I look.") < final.index("INGEST_REQUIRED") < final.index("Nothing there.")
    await ended(log)


async def test_thinking_shows_after_a_second_of_silence_and_goes_with_the_first_word(
    tabs: Callable[..., Tab], scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.conversations.renderers.html.THINKING_AFTER_SECONDS", 0.05)
    tab = tabs()
    await tab.open()
    gate, end = Gate(), Gate()
    log = await running(scripted, gate, TextDelta("Word."), end)
    await tab.until("Thinking…")
    gate.open.set()
    shown = await tab.until("Word.")
    assert re.search(r'innerHTML:#thinking-[\w-]+">\s*</div>', shown)
    end.open.set()
    await ended(log)


async def test_the_list_is_fetched_anew_when_any_conversation_changes(
    tabs: Callable[..., Tab],
) -> None:
    tab = tabs()
    await tab.open()
    await tab.until('id="send"')
    assert "pulse" not in tab.all
    services.changed("elsewhere")
    await tab.until('id="pulse"')


@pytest.mark.fault("The reader leaves or reloads")
@pytest.mark.door
async def test_what_changed_before_the_socket_was_open_is_fetched_then(
    tabs: Callable[..., Tab], async_client: AsyncClient
) -> None:
    found = re.search(r'data-mark="(\d+-\d+)"', await page(async_client, "/chat"))
    assert found
    services.changed("elsewhere")
    tab = tabs()
    await tab.open(mark=found[1])
    await tab.until('id="pulse"')


@pytest.mark.parametrize("message", BAD_MESSAGES)
async def test_a_message_that_makes_no_sense_closes_the_socket(
    tabs: Callable[..., Tab], message: str
) -> None:
    tab = tabs()
    connected, _ = await tab.socket.connect()
    assert connected
    await tab.socket.send_to(text_data=message or " ")
    closed = await tab.socket.receive_output(timeout=PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


async def test_only_ids_that_can_be_ones_have_a_socket() -> None:
    for bad in ("a b", "x" * 129, "a/b"):
        socket = WebsocketCommunicator(application, f"/ws/ui/chat/{bad}", headers=HEADERS)
        connected, _ = await socket.connect()
        assert not connected
