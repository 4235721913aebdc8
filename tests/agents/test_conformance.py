"""The rules for every provider, tested through the loop and, if there is a server, a real socket.

`rigs/base.py` describes how to add a provider.
"""

import asyncio
from contextlib import aclosing

import pytest

from apps.agents.events import ChatEvent, TurnFailed, TurnFinished
from apps.agents.loop import run
from apps.agents.providers.base import Provider
from apps.agents.providers.registry import get_provider, providers
from tests.agents.fakes import RecordedAnswer, chat_request, record
from tests.agents.rigs import RIGS
from tests.agents.rigs.base import KINDS, Backend, Rig, Scenario
from tests.agents.rigs.cases import cases, each_rig
from tests.stand_ins.openai_scripts import PLAIN

pytestmark = pytest.mark.door


@pytest.fixture
def provider(rig: Rig) -> Provider:
    return get_provider(rig.provider)


def test_every_provider_has_a_scenario_of_each_kind_or_a_reason_why_not() -> None:
    assert {rig.provider for rig in RIGS} == set(providers())
    for rig in RIGS:
        covered = {s for s in KINDS for scenario in rig.scenarios if scenario.kind.startswith(s)}
        assert covered | set(rig.not_applicable) == set(KINDS), rig.provider
        assert not covered & set(rig.not_applicable), rig.provider


@each_rig()
async def test_a_provider_with_its_backend_is_available_and_has_models(
    backend: Backend, provider: Provider
) -> None:
    assert (await provider.availability()).available
    keys = [model.key for model in await provider.models()]
    assert keys
    assert len(set(keys)) == len(keys)


@cases(lambda rig, scenario: True)
async def test_an_answer_has_each_part_once_and_one_end(
    rig: Rig, backend: Backend, provider: Provider, scenario: Scenario
) -> None:
    recorded = await record(provider, scenario.request)
    assert_text(recorded, scenario)
    assert recorded.reasoning == scenario.reasoning
    results = [(r.call.name, r.error_code) for r in recorded.results]
    assert results == list(scenario.tools) or (
        not rig.in_turn and sorted(results, key=repr) == sorted(scenario.tools, key=repr)
    )
    if scenario.end == "finished":
        assert isinstance(recorded.end, TurnFinished), recorded.end
    else:
        assert (recorded.failure.code, recorded.failure.retryable) == (
            scenario.end,
            scenario.retryable,
        )
        assert " " in recorded.failure.message
    assert backend.idle()


def assert_text(recorded: RecordedAnswer, scenario: Scenario) -> None:
    if isinstance(scenario.text, str):
        assert recorded.text == scenario.text
        return
    places = [recorded.text.find(piece) for piece in scenario.text]
    assert -1 not in places, recorded.text
    assert places == sorted(places)


@cases(
    lambda rig, scenario: (
        scenario.end == "finished"
        and scenario.kind != "10,000 tokens"
        and (not rig.slow or scenario.kind == "one tool")
    )
)
@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_an_answer_can_be_closed_at_any_event(
    backend: Backend, provider: Provider, scenario: Scenario, how: str
) -> None:
    whole = (await record(provider, scenario.request)).events
    for count in sorted({*range(min(len(whole), 6)), len(whole) // 2, len(whole) - 1}):
        recorded = await partial_answer(provider, scenario, count, how)
        assert list(map(type, recorded)) == list(map(type, whole[:count]))
    assert backend.idle()


@each_rig(lambda rig: "silence in the middle" not in rig.not_applicable)
@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_closing_stops_an_answer_that_would_never_end(
    rig: Rig, backend: Backend, provider: Provider, how: str
) -> None:
    scenario = rig.scenario("silence in the middle")
    recorded: list[ChatEvent] = []
    while "".join(getattr(event, "text", "") for event in recorded) != scenario.text:
        recorded = await partial_answer(provider, scenario, len(recorded) + 1, how)
        assert backend.idle()


async def partial_answer(
    provider: Provider, scenario: Scenario, count: int, how: str
) -> list[ChatEvent]:
    """Return the first `count` events of an answer that is then closed or cancelled."""
    recorded: list[ChatEvent] = []
    task = asyncio.create_task(_listen(provider, scenario, count, how, recorded))
    await asyncio.wait({task})
    assert task.cancelled() or task.exception() is None
    return recorded


async def _listen(
    provider: Provider, scenario: Scenario, count: int, how: str, recorded: list[ChatEvent]
) -> None:
    async with aclosing(run(provider, scenario.request, 5)) as events:
        while len(recorded) < count:
            recorded.append(await anext(events))
        if how == "cancel":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await anext(events, None)


@pytest.mark.fault("The model server fails")
@each_rig(lambda rig: rig.cuts)
async def test_a_connection_cut_at_any_byte_keeps_the_text_so_far(
    rig: Rig, backend: Backend, provider: Provider
) -> None:
    for models in rig.cuts:
        texts = []
        for model in models:
            recorded = await record(provider, chat_request(model))
            assert PLAIN.startswith(recorded.text), model
            assert isinstance(recorded.end, TurnFailed) or recorded.text == PLAIN, model
            texts.append(recorded.text)
        assert texts == sorted(texts, key=len), "more bytes never give less text"
        assert (texts[0], texts[-1]) == ("", PLAIN)


@each_rig(lambda rig: rig.markers)
async def test_a_marker_split_between_frames_does_not_leak(
    backend: Backend, provider: Provider
) -> None:
    text = "<think>hm</think>Hello"
    for position in range(1, len(text)):
        model = backend.add_text_model([text[:position], text[position:]])
        recorded = await record(provider, chat_request(model))
        assert (recorded.text, recorded.reasoning) == ("Hello", "hm"), position
