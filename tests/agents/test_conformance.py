"""What every provider must keep to, over the same loop and, where there is one, a real socket.

`rigs/base.py` tells how a provider joins.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from apps.agents.events import ChatEvent, TurnFailed, TurnFinished
from apps.agents.loop import run
from apps.agents.providers.base import Provider
from apps.agents.providers.registry import get_provider, providers
from tests.agents.cast import Heard, asked, hear
from tests.agents.rigs import RIGS
from tests.agents.rigs.base import SCENES, Play, Rig, Stage
from tests.stand_ins.openai_scripts import PLAIN

pytestmark = pytest.mark.door


def cases(wanted: Callable[[Rig, Play], object]) -> Any:
    chosen = [(rig, play) for rig in RIGS for play in rig.plays if wanted(rig, play)]
    ids = [f"{rig.provider}: {play.scene}" for rig, play in chosen]
    return pytest.mark.parametrize(("rig", "play"), chosen, ids=ids)


def each_rig(wanted: Callable[[Rig], object] = bool) -> Any:
    return pytest.mark.parametrize("rig", list(filter(wanted, RIGS)), ids=lambda rig: rig.provider)


@pytest.fixture
def stage(rig: Rig, request: pytest.FixtureRequest) -> Stage:
    play = request.node.callspec.params.get("play")
    made: Stage = request.getfixturevalue(rig.stage)
    if play is not None:
        made.offer(play.offered)
        if play.end == "PROVIDER_TIMEOUT":
            # Little patience with a provider that is to fall silent.
            idle_timeout = {"first_byte_seconds": 60.0 if play.text else 0.5, "idle_seconds": 2.0}
            request.getfixturevalue("configure")(**idle_timeout)
    return made


@pytest.fixture
def provider(rig: Rig) -> Provider:
    return get_provider(rig.provider)


def test_every_provider_plays_every_scene_or_says_why_not() -> None:
    assert {rig.provider for rig in RIGS} == set(providers())
    for rig in RIGS:
        played = {s for s in SCENES for play in rig.plays if play.scene.startswith(s)}
        assert played | set(rig.lacks) == set(SCENES), rig.provider
        assert not played & set(rig.lacks), rig.provider


@each_rig()
async def test_a_provider_on_its_stage_is_available_and_has_models(
    stage: Stage, provider: Provider
) -> None:
    assert (await provider.availability()).available
    keys = [model.key for model in await provider.models()]
    assert keys
    assert len(set(keys)) == len(keys)


@cases(lambda rig, play: True)
async def test_an_answer_says_all_of_it_once_and_ends_once(
    rig: Rig, stage: Stage, provider: Provider, play: Play
) -> None:
    heard = await hear(provider, play.request)
    assert_text(heard, play)
    assert heard.reasoning == play.reasoning
    results = [(r.call.name, r.error_code) for r in heard.results]
    assert results == list(play.tools) or (
        not rig.in_turn and sorted(results, key=repr) == sorted(play.tools, key=repr)
    )
    if play.end == "finished":
        assert isinstance(heard.end, TurnFinished), heard.end
    else:
        assert (heard.failure.code, heard.failure.retryable) == (play.end, play.retryable)
        assert " " in heard.failure.message
    assert stage.idle()


def assert_text(heard: Heard, play: Play) -> None:
    if isinstance(play.text, str):
        assert heard.text == play.text
        return
    places = [heard.text.find(piece) for piece in play.text]
    assert -1 not in places, heard.text
    assert places == sorted(places)


@cases(
    lambda rig, play: (
        play.end == "finished"
        and play.scene != "10,000 tokens"
        and (not rig.slow or play.scene == "one tool")
    )
)
@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_an_answer_may_be_left_at_any_event(
    stage: Stage, provider: Provider, play: Play, way: str
) -> None:
    whole = (await hear(provider, play.request)).events
    for count in sorted({*range(min(len(whole), 6)), len(whole) // 2, len(whole) - 1}):
        heard = await left(provider, play, count, way)
        assert [event.kind for event in heard] == [event.kind for event in whole[:count]]
    assert stage.idle()


@each_rig(lambda rig: "silence in the middle" not in rig.lacks)
@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_leaving_stops_an_answer_that_would_never_end(
    rig: Rig, stage: Stage, provider: Provider, way: str
) -> None:
    play = rig.play("silence in the middle")
    heard: list[ChatEvent] = []
    while "".join(getattr(event, "text", "") for event in heard) != play.text:
        heard = await left(provider, play, len(heard) + 1, way)
        assert stage.idle()


async def left(provider: Provider, play: Play, count: int, way: str) -> list[ChatEvent]:
    """The first events of an answer that is left after so many: closed, or cancelled waiting."""
    heard: list[ChatEvent] = []
    listening = asyncio.create_task(_listen(provider, play, count, way, heard))
    await asyncio.wait({listening})
    assert listening.cancelled() or listening.exception() is None
    return heard


async def _listen(
    provider: Provider, play: Play, count: int, way: str, heard: list[ChatEvent]
) -> None:
    async with aclosing(run(provider, play.request, 5)) as events:
        while len(heard) < count:
            heard.append(await anext(events))
        if way == "cancel":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await anext(events, None)


@each_rig(lambda rig: rig.cuts)
async def test_a_connection_cut_anywhere_keeps_what_had_come(
    rig: Rig, stage: Stage, provider: Provider
) -> None:
    for models in rig.cuts:
        texts = []
        for model in models:
            heard = await hear(provider, asked(model))
            assert PLAIN.startswith(heard.text), model
            assert isinstance(heard.end, TurnFailed) or heard.text == PLAIN, model
            texts.append(heard.text)
        assert texts == sorted(texts, key=len), "more bytes never tell less"
        assert (texts[0], texts[-1]) == ("", PLAIN)


@each_rig(lambda rig: rig.markers)
async def test_a_marker_cut_anywhere_on_the_wire_does_not_leak(
    stage: Stage, provider: Provider
) -> None:
    said = "<think>hm</think>Hello"
    for position in range(1, len(said)):
        model = stage.saying([said[:position], said[position:]])
        heard = await hear(provider, asked(model))
        assert (heard.text, heard.reasoning) == ("Hello", "hm"), position
