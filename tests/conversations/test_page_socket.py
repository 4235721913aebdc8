"""The chat page's socket: fragments that bring any page to what a reload would show."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from channels.testing import WebsocketCommunicator
from django.test import AsyncClient

from apps.agents.events import ReasoningDelta, TextDelta, ToolCallRequested
from apps.agents.messages import ToolCall
from apps.conversations import runner, services
from apps.conversations.stream import RunLog
from codeinfo.asgi import application
from tests.conversations.conftest import PATIENCE, ended, question, reached
from tests.conversations.test_page import answered, page
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
ARTICLE = re.compile(r"<article .*?</article>", re.DOTALL)


class Tab:
    """An open page: what it was sent, and the turns it has."""

    def __init__(self, conversation_id: str = "c1") -> None:
        path = f"/ws/ui/chat/{conversation_id}"
        self.socket = WebsocketCommunicator(application, path, headers=HEADERS)
        self.messages: list[str] = []

    async def open(self, **turns: str) -> None:
        connected, _ = await self.socket.connect()
        assert connected
        await self.socket.send_json_to({"turns": turns})

    async def until(self, text: str) -> str:
        """Read messages up to the one that holds `text`; that one."""
        while True:
            message = await self.socket.receive_from(timeout=PATIENCE)
            self.messages.append(message)
            if text in message:
                return message

    @property
    def all(self) -> str:
        return "".join(self.messages)


@pytest_asyncio.fixture
async def tabs() -> AsyncIterator[Callable[..., Tab]]:
    opened: list[Tab] = []

    def make(**options: Any) -> Tab:
        opened.append(Tab(**options))
        return opened[-1]

    yield make
    for tab in opened:
        await tab.socket.disconnect()


def article(html: str) -> str:
    """The one turn in some HTML, as it is once it stands in the page."""
    (found,) = ARTICLE.findall(html)
    return str(found).replace(' hx-swap-oob="true"', "")


async def running(scripted: Scripted, *script: Any) -> RunLog:
    scripted([*script])
    return await runner.start(question())


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
    await tab.until("<em>block</em>")
    assert "data-stop" in tab.all
    gate.open.set()
    final = await tab.until('data-status="ok"')
    await ended(log)
    assert article(final) == article(await page(async_client))
    assert 'id="send"' in final
    assert "Answer complete, 0 citations" in final


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
    assert log.turn_id not in missed


async def test_a_page_that_lacks_nothing_is_sent_nothing_anew(
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    turn = await answered({"type": "text", "text": "Yes."})
    tab = tabs()
    await tab.open(**{str(turn.pk): "ok"})
    assert "<article" not in await tab.until('id="send"')


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
    tabs: Callable[..., Tab], scripted: Scripted
) -> None:
    tab = tabs()
    await tab.open()
    await tab.until('id="send"')
    await answered({"type": "text", "text": "Yes."})
    services.changed("elsewhere")
    assert 'hx-get="/ui/chat/sidebar"' in await tab.until("pulse")
    services.changed("c1")
    assert "Which timeout wins?" in await tab.until("chat-title")


@pytest.mark.parametrize("message", ["", "nonsense", "[]", '{"turns": []}', '{"x": 1}', "null"])
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
