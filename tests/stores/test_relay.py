"""What one process changes, another hears of: two ends of the relay on one Redis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.core.concurrency.hub import Hub
from apps.core.config import config
from apps.site import relay
from apps.site.relay import Relay

PATIENCE = 30


@pytest.fixture
def url() -> str:
    return config().redis_url


@asynccontextmanager
async def end_of(url: str) -> AsyncIterator[Hub]:
    """A hub as another process has it, once it hears what is said."""
    hub, layer = Hub(), RedisPubSubChannelLayer(hosts=[url])
    async with Relay(hub, layer).running():
        yield hub


async def hears(listener: Hub, speaker: Hub, topic: str) -> set[str]:
    """Say "again" until it is heard, since nobody tells when the other end listens; all heard."""
    received: set[str] = set()
    with listener.subscribe(topic) as changes:
        async with asyncio.timeout(PATIENCE):
            while "again" not in received:
                speaker.notify(topic, "again")
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        received |= set(await changes.next_batch())
    return received


async def test_a_notice_reaches_the_other_process(url: str) -> None:
    async with end_of(url) as one, end_of(url) as other:
        assert await hears(other, one, "sidebar") == {"again"}
        assert await hears(one, other, "ingest") == {"again"}


async def test_local_notices_are_not_relayed(url: str) -> None:
    async with end_of(url) as one, end_of(url) as other:
        await hears(other, one, "logs")
        with other.subscribe("logs") as changes:
            one.notify_here("logs", "mine")
            one.notify("logs", "ours")
            async with asyncio.timeout(PATIENCE):
                assert "mine" not in await changes.next_batch()


async def test_notices_from_threads_are_all_carried(url: str) -> None:
    async with end_of(url) as one, end_of(url) as other:
        await hears(other, one, "roots")
        expected = {str(number) for number in range(500)}
        with other.subscribe("roots") as changes:
            await asyncio.gather(
                *(asyncio.to_thread(one.notify, "roots", number) for number in expected)
            )
            async with asyncio.timeout(PATIENCE):
                while expected:
                    expected -= set(await changes.next_batch())
        assert not expected


async def test_notices_wait_while_redis_is_away(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "PAUSE_SECONDS", 0.01)
    hub, layer = Hub(), RedisPubSubChannelLayer(hosts=[url])
    tries: list[list[tuple[str, str]]] = []
    sent = asyncio.Event()

    async def group_send(group: str, message: dict[str, Any]) -> None:
        tries.append(message["notices"])
        if len(tries) < 3:
            hub.notify("sidebar", f"c{len(tries)}")
            raise RedisConnectionError
        sent.set()

    monkeypatch.setattr(layer, "group_send", group_send, raising=False)
    async with Relay(hub, layer).running():
        hub.notify("sidebar", "c0")
        async with asyncio.timeout(PATIENCE):
            await sent.wait()
    assert tries[2] == [("sidebar", "c0"), ("sidebar", "c1"), ("sidebar", "c2")]
