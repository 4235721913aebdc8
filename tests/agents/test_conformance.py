"""What every provider must keep to, over the same loop and, where there is one, a real socket."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from apps.agents.events import TurnFailed, TurnFinished
from apps.agents.loop import run
from apps.agents.providers.registry import get_provider
from tests.agents.cast import asked, hear
from tests.agents.rigs import PLAYS, Play
from tests.stand_ins.openai_scripts import PLAIN, Script, Stall, end, say, search
from tests.stand_ins.openai_server import OpenAIStandIn

COMPLETE = [play for play in PLAYS if play.end == "finished" and "10,000" not in play.scene]


@pytest.fixture(autouse=True)
def stage(request: pytest.FixtureRequest, turn_knobs: Callable[..., None]) -> None:
    """The stand-in for providers that ask a server; little patience for those that fall silent."""
    play = getattr(request.node, "callspec", None) and request.node.callspec.params.get("play")
    if play is None or play.provider == "openai":
        request.getfixturevalue("server")
    if play is not None and play.end == "PROVIDER_TIMEOUT":
        turn_knobs(first_byte_seconds=60.0 if play.text else 0.5, idle_seconds=1.0)


@pytest.mark.parametrize("play", PLAYS, ids=str)
async def test_an_answer_says_all_of_it_once_and_ends_once(play: Play) -> None:
    heard = await hear(get_provider(play.provider), play.request)
    if isinstance(play.text, str):
        assert heard.text == play.text
    else:
        places = [heard.text.find(piece) for piece in play.text]
        assert -1 not in places, heard.text
        assert places == sorted(places)
    assert heard.reasoning == play.reasoning
    assert tuple((r.call.name, r.error_code) for r in heard.results) == play.tools
    if play.end == "finished":
        assert isinstance(heard.end, TurnFinished), heard.end
    else:
        assert (heard.failure.code, heard.failure.retryable) == (play.end, play.retryable)
        assert " " in heard.failure.message


@pytest.mark.parametrize("play", COMPLETE, ids=str)
async def test_an_answer_may_be_left_at_any_event(play: Play) -> None:
    provider = get_provider(play.provider)
    whole = (await hear(provider, play.request)).events
    for count in sorted({*range(min(len(whole), 6)), len(whole) // 2, len(whole) - 1}):
        async with aclosing(run(provider, play.request, 5)) as events:
            heard = [await anext(events) for _ in range(count)]
        assert [event.kind for event in heard] == [event.kind for event in whole[:count]]


@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_leaving_stops_the_generation_on_the_server(way: str, server: OpenAIStandIn) -> None:
    """Left at each event of an answer that would never end, the server sees the client go."""
    server.scripts["forever"] = Script([search, [*say("Half an answer"), Stall()]])
    kinds = ["started", "tool_started", "tool_finished", "text", "text", "text"]
    for count in range(len(kinds) + 1):
        server.exchanges.clear()
        heard: list[str] = []
        task = asyncio.create_task(_listen(heard, count, way))
        await asyncio.wait({task})
        assert heard == kinds[:count]
        rounds = [exchange for exchange in server.chats if exchange.done.wait(5)]
        assert len(rounds) == len(server.chats) == (0 if count < 2 else 1 if count < 4 else 2)
        assert [exchange.client_left.is_set() for exchange in rounds[1:]] == [True] * (count > 3)


async def _listen(heard: list[str], count: int, way: str) -> None:
    async with aclosing(run(get_provider("openai"), asked("forever"), 5)) as events:
        while len(heard) < count:
            heard.append((await anext(events)).kind)
        if way == "cancel":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await anext(events)


@pytest.mark.parametrize("how", ["cut", "quiet-cut"])
async def test_a_connection_cut_at_any_byte_keeps_what_had_come(
    how: str, server: OpenAIStandIn
) -> None:
    texts = []
    for position in range(0, 1800, 75):
        heard = await hear(get_provider("openai"), asked(f"{how}-{position}"))
        assert PLAIN.startswith(heard.text)
        assert isinstance(heard.end, TurnFailed) or heard.text == PLAIN
        texts.append(heard.text)
    assert texts == sorted(texts, key=len), "more bytes never tell less"
    assert texts[0] == ""
    assert texts[-1] == PLAIN


async def test_a_marker_cut_anywhere_on_the_wire_does_not_leak(server: OpenAIStandIn) -> None:
    said = "<think>hm</think>Hello"
    for position in range(1, len(said)):
        pieces = [*say(said[:position], 99), *say(said[position:], 99)]
        server.scripts["split"] = Script([[*pieces, *end()]])
        heard = await hear(get_provider("openai"), asked("split"))
        assert (heard.text, heard.reasoning) == ("Hello", "hm"), position
