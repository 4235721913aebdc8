"""Conversations belong to those who began them, on every door, while answers are made and after."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.agents.events import TextDelta
from apps.conversations import memory
from apps.conversations.models import Conversation
from apps.conversations.stream import live_runs
from apps.conversations.types import StartTurn
from apps.core.principal import Principal, acting_as
from tests.core.sockets import socket
from tests.support.chat import PATIENCE, answers, ended, nothing_left_running, reached, scripted  # noqa: F401 - fixtures
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

Scripted = Callable[..., ScriptedProvider]
SECRET = "what only Ada may read"
BODY = {"provider": "openai", "model": "m-1", "conversationId": "c1", "message": "Why?"}


@pytest.fixture(autouse=True)
def guarded(configure: Callable[..., None]) -> None:
    configure(require_login=True, api_token="key-1")


async def user(name: str, *, staff: bool = False) -> AsyncClient:
    known = await User.objects.acreate(username=name, is_staff=staff)
    client = AsyncClient()
    await client.aforce_login(known)
    return client


async def say(link: WebsocketCommunicator, kind: str, **fields: Any) -> None:
    message = {"protocolVersion": "v1", "requestId": "r1", "type": kind, **fields}
    await link.send_to(text_data=json.dumps(message))


async def heard_before_echo(link: WebsocketCommunicator) -> list[dict[str, Any]]:
    """All that a client of /ws was told before the answer to a question asked now."""
    await say(link, "cancel_inflight", conversationId="echo", inflightId="echo")
    received: list[dict[str, Any]] = []
    while True:
        frame = json.loads(await link.receive_from(timeout=PATIENCE))
        if frame.get("conversationId") == "echo":
            return received
        received.append(frame)


async def begin(client: AsyncClient, conversation_id: str = "c1") -> Any:
    body = BODY | {"conversationId": conversation_id}
    return await client.post(
        "/chat", body, content_type="application/json", headers=credentials(client)
    )


def credentials(client: AsyncClient) -> dict[str, str]:
    """A client without a session comes with the token."""
    return {} if client.cookies else {"authorization": "Bearer key-1"}


async def test_the_author_is_written_and_a_token_writes_none(scripted: Scripted) -> None:  # noqa: F811
    scripted([TextDelta(SECRET)])
    ada = await user("ada")
    assert (await begin(ada)).status_code == 202
    token = AsyncClient()
    assert (await begin(token, "c2")).status_code == 202
    owners = {row.id: row.owner_id async for row in Conversation.objects.all()}
    assert owners == {"c1": (await User.objects.aget(username="ada")).pk, "c2": None}


@pytest.mark.fault("A user without the right")
async def test_lists_show_the_own_alone_and_staff_all(scripted: Scripted) -> None:  # noqa: F811
    scripted([TextDelta(SECRET)])
    ada, bob, staff = await user("ada"), await user("bob"), await user("boss", staff=True)
    token = AsyncClient()
    await begin(ada)
    await begin(bob, "b1")
    await begin(token, "t1")
    listed = {}
    for name, client in {"ada": ada, "bob": bob, "staff": staff, "token": token}.items():
        answer = await client.get("/conversations", headers=credentials(client))
        items = answer.json()["items"]
        listed[name] = {item["conversationId"] for item in items}
    everything = {"c1", "b1", "t1"}
    assert listed == {"ada": {"c1"}, "bob": {"b1"}, "staff": everything, "token": everything}
    sidebar = (await bob.get("/ui/chat/sidebar")).content.decode()
    assert "c=b1" in sidebar and "c=c1" not in sidebar and "c=t1" not in sidebar


@pytest.mark.fault("A user without the right")
@pytest.mark.door
async def test_another_user_hears_nothing_of_an_answer_in_the_making(scripted: Scripted) -> None:  # noqa: F811
    """Not even one who asked for the conversation before it existed."""
    gate = Gate()
    scripted([TextDelta(SECRET), gate, TextDelta(" the end")])
    ada, bob = await user("ada"), await user("bob")
    async with socket("/ws", bob) as early, socket("/ws/ui/chat/c1", bob) as page:
        await say(early, "subscribe_conversation", conversationId="c1")
        await say(early, "subscribe_sidebar")
        await page.send_to(text_data=json.dumps({"turns": {}, "list": ""}))
        assert await heard_before_echo(early) == []
        assert (await begin(ada)).status_code == 202
        await reached(gate.reached)
        log = live_runs.of("c1")
        assert log is not None
        async with socket("/ws", bob) as late, socket("/ws", ada) as hers:
            for link in (late, hers):
                await say(link, "subscribe_conversation", conversationId="c1")
            assert SECRET in json.dumps(await heard_before_echo(hers))
            assert await heard_before_echo(late) == []
        cancelled = await bob.post("/conversations/c1/cancel", {}, content_type="application/json")
        assert cancelled.status_code == 404
        gate.open.set()
        await ended(log)
        assert [turn.status for turn in await answers()] == ["ok"]
        assert await heard_before_echo(early) == []
        shown = [await page.receive_from(timeout=PATIENCE)]
        while not await page.receive_nothing():
            shown.append(await page.receive_from(timeout=PATIENCE))
        assert SECRET not in "".join(shown)


@pytest.mark.fault("A user without the right")
async def test_another_user_hears_of_no_change_in_a_list(scripted: Scripted) -> None:  # noqa: F811
    ada, bob = await user("ada"), await user("bob")
    async with socket("/ws", bob) as his, socket("/ws", ada) as hers:
        for link in (his, hers):
            await say(link, "subscribe_sidebar")
            await heard_before_echo(link)
        made = await ada.post(
            "/conversations",
            {"provider": "builtin", "model": "search"},
            content_type="application/json",
        )
        one = made.json()["conversationId"]
        for verb in ("archive", "delete"):
            body = {"conversationIds": [one]}
            path = f"/conversations/bulk/{verb}"
            done = await ada.post(path, body, content_type="application/json")
            assert done.status_code == 200
        kinds = [frame["type"] for frame in await heard_before_echo(hers)]
        assert kinds[-1] == "conversation_delete"
        assert await heard_before_echo(his) == []


@pytest.mark.fault("A user without the right")
async def test_a_conversation_of_somebody_else_is_not_gone_on_with(scripted: Scripted) -> None:  # noqa: F811
    provider = scripted([TextDelta(SECRET)])
    ada, bob = await user("ada"), await user("bob")
    await begin(ada)
    refused = await begin(bob)
    assert (refused.status_code, refused.json()["code"]) == (404, "NOT_FOUND")
    assert len(provider.requests) == 1
    assert len(await answers()) == 1


async def test_a_follow_up_of_staff_leaves_it_to_its_author(scripted: Scripted) -> None:  # noqa: F811
    scripted([TextDelta("one")])
    ada, staff = await user("ada"), await user("boss", staff=True)
    await begin(ada)
    log = live_runs.of("c1")
    if log is not None:
        await ended(log)
    assert (await begin(staff)).status_code == 202
    turns = (await ada.get("/conversations/c1/turns")).json()["items"]
    assert len([turn for turn in turns if turn["role"] == "user"]) == 2


async def test_the_runs_of_other_users_are_not_visible(scripted: Scripted) -> None:  # noqa: F811
    gate = Gate()
    scripted([TextDelta(SECRET), gate])
    ada, bob = await user("ada"), await user("bob")
    await begin(ada)
    await reached(gate.reached)
    log = live_runs.of("c1")
    assert log is not None
    refused = await begin(bob)
    gate.open.set()
    await ended(log)
    assert (refused.status_code, refused.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.door
async def test_turns_kept_in_memory_are_visible_only_to_their_owner() -> None:
    """Of the same id, which nobody could look up then."""
    ada, bob = await user("ada"), await user("bob")
    owners = {row.username: row.pk async for row in User.objects.all()}
    await Conversation.objects.acreate(
        id="c1", provider="openai", model="m-1", owner_id=owners["ada"]
    )
    question = StartTurn("c1", SECRET, "openai", "m-1")
    with acting_as(Principal("user", owners["bob"])):
        memory.start_turn(question, "here")
    try:
        page = (await ada.get("/chat?c=c1")).content.decode()
        assert SECRET not in page
        assert (await bob.get("/chat?c=c1")).status_code == 404
    finally:
        memory.discard("c1")
