"""Several conversations at once, from the page's list."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient
from django.utils import timezone

from apps.conversations.models import CommandRun, Conversation
from tests.support.chat import conversation

pytestmark = pytest.mark.usefixtures("transactional_db")


async def do(client: AsyncClient, verb: str, *ids: str) -> dict[str, Any]:
    """What the page is told of it."""
    response = await client.post(f"/ui/chat/bulk/{verb}", {"id": list(ids)})
    assert response.status_code == 204
    return dict(json.loads(response.headers["HX-Trigger"]))


async def archived() -> set[str]:
    rows = Conversation.objects.exclude(archived_at=None)
    return {row.pk async for row in rows}


async def test_archives_restores_and_deletes_all_selected(
    async_client: AsyncClient,
) -> None:
    for name in ("a", "b", "c"):
        await conversation(id=name)
    answer = await do(async_client, "archive", "a", "b")
    assert answer["toast"]["text"] == "Archived 2 conversations"
    assert answer["chat:changed"] == {"ids": ["a", "b"]}
    assert await archived() == {"a", "b"}
    assert (await do(async_client, "restore", "a"))["toast"]["text"] == "Restored 1 conversation"
    assert await archived() == {"b"}
    answer = await do(async_client, "delete", "b")
    assert answer["toast"]["text"] == "Deleted 1 conversation"
    assert answer["chat:deleted"] == {"ids": ["b"]}
    assert {row.pk async for row in Conversation.objects.all()} == {"a", "c"}


async def test_changes_all_or_none(async_client: AsyncClient) -> None:
    await conversation(id="open")
    await conversation(id="away", archived_at=timezone.now())
    for verb, ids in (("delete", ["open", "away"]), ("archive", ["open", "gone"])):
        refused = await async_client.post(f"/ui/chat/bulk/{verb}", {"id": ids})
        body = refused.json()
        assert (refused.status_code, body["code"]) == (409, "BATCH_CONFLICT")
        assert body["message"] == "Bulk operation rejected."
    assert await archived() == {"away"}
    assert await Conversation.objects.acount() == 2


async def test_refuses_unknown_verbs(async_client: AsyncClient) -> None:
    response = await async_client.post("/ui/chat/bulk/rename", {"id": ["a"]})
    assert response.status_code == 404


async def test_the_list_shows_the_actions_of_each_row(
    async_client: AsyncClient,
) -> None:
    await conversation(id="open")
    await conversation(id="away", archived_at=timezone.now())
    html = (await async_client.get("/ui/chat/sidebar?state=all")).content.decode()
    assert html.count('data-state="active"') == html.count('data-state="archived"') == 1
    assert html.count("data-select>") == 2


async def test_the_list_shows_its_end(async_client: AsyncClient) -> None:
    for number in range(25):
        await conversation(id=f"n{number}")

    async def html(query: str) -> str:
        return (await async_client.get(f"/ui/chat/sidebar?{query}")).content.decode()

    assert "Load more" in await html("")
    assert "No more" not in await html("")
    assert "Load more" not in await html("n=40")
    assert "No more" in await html("n=40")
    assert "No more" not in await html("q=nothing-like-it")


async def test_a_delete_counts_conversations_alone(async_client: AsyncClient) -> None:
    row = await conversation(id="a", archived_at=timezone.now())
    await CommandRun.objects.acreate(
        pk=uuid4(), conversation=row, name="tour", steps=1, status="ok", owner="x/1/y"
    )
    answer = await do(async_client, "delete", "a")
    assert answer["toast"]["text"] == "Deleted 1 conversation"
