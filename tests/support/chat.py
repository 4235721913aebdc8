"""The cast: one conversation, a provider that plays a script, hands to ask and to watch with."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.agents.providers import registry
from apps.conversations import runner
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.types import StartTurn
from tests.support.scripted import ScriptedProvider, Step

# A test that hangs must fail; nothing is ever waited for this long.
PATIENCE = 60


@pytest_asyncio.fixture
async def nothing_left_running(transactional_db: None) -> AsyncIterator[None]:
    yield
    await asyncio.wait_for(runner.shutdown(), PATIENCE)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedProvider]:
    """scripted([...], [...]) makes the provider `openai`, or another, play these rounds."""

    def use(
        *rounds: Sequence[Step], kind: type[ScriptedProvider] = ScriptedProvider, id: str = "openai"
    ) -> Any:
        provider = kind(*rounds, id=id)
        others = {name: one for name, one in registry.providers().items() if name != id}
        monkeypatch.setattr(registry, "providers", lambda: {id: provider, **others})
        return provider

    return use


@pytest.fixture
def ask(async_client: AsyncClient) -> Callable[..., Any]:
    """ask(message=…) posts to /chat, for the scripted provider in conversation c1."""

    async def post(accept: str = "application/json", **changes: Any) -> Any:
        body = {"provider": "openai", "model": "m-1", "conversationId": "c1", "message": "Why?"}
        return await async_client.post(
            "/chat", body | changes, content_type="application/json", headers={"accept": accept}
        )

    return post


@pytest.fixture
def say(ask: Callable[..., Any]) -> Callable[..., Any]:
    """say(text, …) asks, waits for the end, and returns the ids of the question and its answer."""

    async def post(message: str, **fields: Any) -> tuple[str, str]:
        response = await ask(message=message, **fields)
        assert response.status_code == 202, response.content
        log = await newest_ended()
        return log.user_turn_id, log.turn_id

    return post


def question(**changes: Any) -> StartTurn:
    arguments: dict[str, Any] = {"conversation_id": "c1", "message": "Why?", "provider": "openai"}
    return StartTurn(**{**arguments, "model": "m-1", **changes})


async def ended(log: RunLog) -> None:
    """Returns when the run is over and its row is saved."""
    await asyncio.wait_for(log.wait(1 << 60), PATIENCE)


async def newest_ended() -> RunLog:
    """The newest run of conversation c1, when it is over and its row is saved."""
    log = live_runs.of("c1") or live_runs.ended("c1")
    assert log is not None
    await ended(log)
    return log


async def reached(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE)


async def answers(conversation_id: str = "c1") -> list[Turn]:
    turns = Turn.objects.filter(conversation=conversation_id, role="assistant")
    return [turn async for turn in turns.order_by("created_at")]


def append(**fields: Any) -> Turn:
    """Store a turn as the last one of the branch that is followed, as it is: no door checks it."""
    row = Conversation.objects.get(pk=fields["conversation_id"])
    turn = Turn.objects.create(parent=row.head, **fields)
    Conversation.objects.filter(pk=row.pk).update(head=turn.pk)
    return turn


async def conversation(**fields: Any) -> Conversation:
    arguments = {"id": "c1", "provider": "openai", "model": "m-1"}
    return await Conversation.objects.acreate(**{**arguments, **fields})
