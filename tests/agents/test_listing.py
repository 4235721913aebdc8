"""What a server lists: remembered for a while, and told a while longer while it is asked anew."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from apps.agents.providers import listing
from apps.agents.providers.base import Model
from apps.agents.providers.listing import (
    FAILED_SECONDS,
    FRESH_SECONDS,
    STALE_SECONDS,
    ModelListCache,
)
from apps.core.errors import Unavailable


class Server:
    """Answers in turn what it is given; `asked` counts the questions."""

    def __init__(self, *answers: str | Unavailable) -> None:
        self.answers = list(answers)
        self.requests = 0

    async def list(self, name: str) -> Sequence[Model]:
        self.requests += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        return [Model(answer, answer)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(listing, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


async def keys(cache: ModelListCache[str], server: str = "here") -> list[str]:
    return [model.key for model in await cache.models(server)]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_many_who_ask_at_once_are_one_question(clock: SimpleNamespace) -> None:
    server = Server("a")
    cache = ModelListCache(server.list)
    assert await asyncio.gather(*(keys(cache) for _ in range(5))) == [["a"]] * 5
    assert server.requests == 1


async def test_an_old_list_is_told_at_once_while_the_server_is_asked(
    clock: SimpleNamespace,
) -> None:
    server = Server("a", "b")
    cache = ModelListCache(server.list)
    await keys(cache)
    clock.now += FRESH_SECONDS + 1
    assert await keys(cache) == ["a"]
    await settled()
    assert (server.requests, await keys(cache)) == (2, ["b"])


async def test_a_very_old_list_is_not_told(clock: SimpleNamespace) -> None:
    server = Server("a", "b")
    cache = ModelListCache(server.list)
    await keys(cache)
    clock.now += FRESH_SECONDS + STALE_SECONDS + 1
    assert await keys(cache) == ["b"]


async def test_another_server_is_asked_at_once(clock: SimpleNamespace) -> None:
    cache = ModelListCache(Server("a", "b").list)
    await keys(cache)
    assert await keys(cache, "elsewhere") == ["b"]


async def test_a_failure_is_remembered_for_a_moment_and_never_told_when_old(
    clock: SimpleNamespace,
) -> None:
    server = Server(Unavailable("gone"), "a")
    cache = ModelListCache(server.list)
    for _ in range(2):
        with pytest.raises(Unavailable, match="gone"):
            await keys(cache)
    assert server.requests == 1
    clock.now += FAILED_SECONDS + 1
    assert await keys(cache) == ["a"]
