"""subscriptions/listen: which changes a stream tells, and how it ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import override_settings
from django.urls import path

from apps.core.concurrency.hub import hub
from apps.core.types import JSON
from apps.mcp import subscriptions
from apps.mcp.rpc import serve
from apps.mcp.search import SEARCH
from apps.mcp.types import McpResources, ResourcePage
from tests.mcp.speech import (
    PATIENCE,
    PREFIX,
    STATELESS,
    ask,
    connection,
    events_in,
    hang_up,
    headers_for,
    request,
    send,
)

TOPIC = "test.resources"
ALL = {"resourcesListChanged": True, "toolsListChanged": True, "promptsListChanged": True}
ID = f"{PREFIX}/subscriptionId"


class Listed:
    """Resources of a test's own. `ids` is the list."""

    def __init__(self) -> None:
        self.ids = ["a"]

    async def version(self) -> object:
        return list(self.ids)

    def change(self, *ids: str) -> None:
        self.ids = list(ids)
        hub.notify(TOPIC)


@pytest.fixture
def listed() -> Iterator[Listed]:
    made = Listed()

    async def page(cursor: str | None) -> ResourcePage:
        return ResourcePage(())

    async def read(uri: str) -> list[JSON]:
        return []

    resources = McpResources(page, read, topic=TOPIC, version=made.version)
    urls = ModuleType("urls")
    endpoint = replace(SEARCH, resources=resources)
    without = replace(endpoint, resources=None)
    patterns = [path("mcp", serve(endpoint)), path("mcp/chat", serve(without))]
    vars(urls).update(urlpatterns=patterns)
    with override_settings(ROOT_URLCONF=urls):
        yield made


class Ear:
    """Reads the messages of a stream, without heartbeats."""

    def __init__(self, door: ApplicationCommunicator) -> None:
        self.door = door
        self.messages: list[JSON] = []

    async def next(self) -> JSON:
        while not self.messages:
            text = (await self.door.receive_output(PATIENCE))["body"].decode()
            self.messages = events_in(text)
        message: JSON = self.messages.pop(0)
        return message


def listen(notifications: JSON, **more: Any) -> JSON:
    return request("subscriptions/listen", {"notifications": notifications, **more})


@asynccontextmanager
async def listening(body: JSON, place: str = "/mcp") -> AsyncIterator[Ear]:
    async with connection(body, place, **headers_for(body, STATELESS)) as door:
        start = await door.receive_output(PATIENCE)
        assert start["status"] == 200
        yield Ear(door)


async def test_a_change_of_the_list_is_told(listed: Listed) -> None:
    async with listening(listen(ALL)) as ear:
        first = await ear.next()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        agreed = {"_meta": {ID: 1}, "notifications": {"resourcesListChanged": True}}
        assert first["params"] == agreed
        listed.change("a", "b")
        told = {"method": "notifications/resources/list_changed", "params": {"_meta": {ID: 1}}}
        assert await ear.next() == {"jsonrpc": "2.0", **told}
        # A notice without a change is not told, and the next change is.
        listed.change("a", "b")
        listed.change("b")
        assert (await ear.next())["method"] == told["method"]
        await hang_up(ear.door)
    assert subscriptions.open_streams == set()


@pytest.mark.parametrize(
    ("notifications", "place"),
    [({}, "/mcp"), ({"toolsListChanged": True}, "/mcp"), (ALL, "/mcp/chat")],
)
async def test_only_what_was_requested_and_is_offered_is_agreed(
    listed: Listed, notifications: JSON, place: str
) -> None:
    async with listening(listen(notifications), place) as ear:
        assert (await ear.next())["params"]["notifications"] == {}
        listed.change("b")
        closing = asyncio.create_task(subscriptions.close())
        last = await ear.next()
        await closing
    # No notice came before the end.
    assert last["result"]["resultType"] == "complete"


async def test_the_end_of_the_server_ends_the_stream_with_an_answer(listed: Listed) -> None:
    async with listening(listen(ALL) | {"id": "s-1"}) as ear:
        await ear.next()
        closing = asyncio.create_task(subscriptions.close())
        last = await ear.next()
        await closing
    assert (last["id"], last["result"]["_meta"][ID]) == ("s-1", "s-1")
    assert subscriptions.open_streams == set()


async def test_changes_of_other_processes_are_noticed_at_the_heartbeat(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "HEARTBEAT_SECONDS", 0.001)
    async with listening(listen(ALL)) as ear:
        await ear.next()
        assert (await ear.door.receive_output(PATIENCE))["body"] == b":\n\n"
        listed.ids = ["c"]
        assert (await ear.next())["method"] == "notifications/resources/list_changed"
        await hang_up(ear.door)


async def test_the_number_of_streams_is_bounded(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_STREAMS", 1)
    body = listen(ALL)
    async with listening(body) as ear:
        await ear.next()
        answer = await send(body, **headers_for(body, STATELESS))
        assert (answer.status, answer.error["data"]["code"]) == (503, "TOO_MANY_STREAMS")
        await hang_up(ear.door)
    async with listening(body) as ear:
        await ear.next()
        await hang_up(ear.door)


@pytest.mark.parametrize(
    ("params", "headers", "status", "code"),
    [
        ({}, {}, 400, -32602),
        ({"notifications": []}, {}, 400, -32602),
        ({"notifications": {"taskIds": ["t"]}}, {}, 400, -32021),
        ({"notifications": {}}, {"accept": "application/json"}, 406, -32600),
    ],
)
@pytest.mark.usefixtures("listed")
async def test_a_request_that_cannot_be_a_stream_is_refused(
    params: JSON, headers: dict[str, str], status: int, code: int
) -> None:
    answer = await ask("subscriptions/listen", params, STATELESS, **headers)
    assert (answer.status, answer.error["code"]) == (status, code)


async def test_a_stateless_client_is_told_of_the_notices() -> None:
    capabilities = (await ask("server/discover")).result["capabilities"]
    assert capabilities["resources"] == {"subscribe": False, "listChanged": True}
    assert capabilities["prompts"] == {"listChanged": False}
