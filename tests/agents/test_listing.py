"""The cache of a model list: fresh, stale during a refresh, expired."""

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
from apps.servers.types import Server


class ListServer:
    """Returns the given lists in order; `requests` counts the requests."""

    def __init__(self, *answers: str | Unavailable) -> None:
        self.answers = list(answers)
        self.requests = 0

    async def list(self, server: Server) -> Sequence[Model]:
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


async def keys(cache: ModelListCache, address: str = "http://here") -> list[str]:
    return [model.key for model in await cache.models(Server("openai", address))]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_concurrent_reads_make_one_request(clock: SimpleNamespace) -> None:
    server = ListServer("a")
    cache = ModelListCache(server.list)
    assert await asyncio.gather(*(keys(cache) for _ in range(5))) == [["a"]] * 5
    assert server.requests == 1


async def test_an_expired_list_is_returned_at_once_during_a_refresh(
    clock: SimpleNamespace,
) -> None:
    server = ListServer("a", "b")
    cache = ModelListCache(server.list)
    await keys(cache)
    clock.now += FRESH_SECONDS + 1
    assert await keys(cache) == ["a"]
    await settled()
    assert (server.requests, await keys(cache)) == (2, ["b"])


async def test_a_list_past_the_stale_period_is_not_returned(clock: SimpleNamespace) -> None:
    server = ListServer("a", "b")
    cache = ModelListCache(server.list)
    await keys(cache)
    clock.now += FRESH_SECONDS + STALE_SECONDS + 1
    assert await keys(cache) == ["b"]


async def test_another_server_is_queried_at_once(clock: SimpleNamespace) -> None:
    cache = ModelListCache(ListServer("a", "b").list)
    await keys(cache)
    assert await keys(cache, "http://elsewhere") == ["b"]


async def test_a_failure_is_cached_briefly_and_never_returned_after_it_expires(
    clock: SimpleNamespace,
) -> None:
    server = ListServer(Unavailable("gone"), "a")
    cache = ModelListCache(server.list)
    for _ in range(2):
        with pytest.raises(Unavailable, match="gone"):
            await keys(cache)
    assert server.requests == 1
    clock.now += FAILED_SECONDS + 1
    assert await keys(cache) == ["a"]
