"""A switch to another branch, and what home and the palette list of the branches."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from apps.agents.events import TextDelta
from apps.conversations import transcript
from apps.conversations.models import Turn
from tests.conversations.tab import Tab
from tests.support.chat import append
from tests.support.scripted import ScriptedProvider

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

Scripted = Callable[..., ScriptedProvider]
Ask = Callable[..., Any]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def test_a_switch_finds_the_lock_of_a_dead_run_open(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")], [TextDelta("Two.")])
    first, answer = await say("First?")
    await say("First?", parentTurnId=first)
    running = {"conversation_id": "c1", "role": "assistant", "status": "running"}
    dead = await sync_to_async(append)(**running, owner="other/1/x", heartbeat_at=LONG_AGO)
    done = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": answer})
    assert done.status_code == 204
    items = (await async_client.get("/conversations/c1/turns")).json()["items"]
    assert [item["content"] for item in items] == ["One.", "First?"]
    assert (await Turn.objects.aget(pk=dead.pk)).error["code"] == "INTERRUPTED"
    other = await async_client.post("/ui/chat/branch", {"c": "unknown", "turn": answer})
    assert (other.status_code, other["X-Problem"]) == (404, "NOT_FOUND")


async def test_a_switch_says_how_many_exchanges_are_above(
    scripted: Scripted, say: Ask, async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "SHOWN_EXCHANGES", 2)
    scripted(*([TextDelta(text)] for text in ("One.", "Two.", "Three.", "Four.", "Other.")))
    first, answer = await say("First?")
    for text in ("Second?", "Third?", "Fourth?"):
        await say(text)
    _, other = await say("Anew?", parentTurnId=None)
    tab = Tab()
    await tab.open(**{other: "ok"})
    await tab.until('id="send"')
    await async_client.post("/ui/chat/branch", {"c": "c1", "turn": first})
    link = await tab.until("#earlier")
    assert "/chat?c=c1&amp;all=1" in link and "Show 2 earlier questions" in link
    await tab.until("Four.")
    assert "Two." not in tab.all
    await async_client.post("/ui/chat/branch", {"c": "c1", "turn": other})
    assert "earlier question" not in await tab.until("#earlier")
    await tab.socket.disconnect()


async def test_the_palette_leads_to_the_branch_that_is_followed_if_it_has_the_words(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("A zeppelin.")], [TextDelta("Two zeppelins, and a blimp.")])
    first, hidden = await say("First?")
    _, shown = await say("First?", parentTurnId=first)
    found = (await async_client.get("/ui/palette?q=zeppelin")).content.decode()
    assert f"/chat?c=c1&amp;turn={shown}" in found
    await async_client.post("/ui/chat/branch", {"c": "c1", "turn": hidden})
    found = (await async_client.get("/ui/palette?q=zeppelin")).content.decode()
    assert f"/chat?c=c1&amp;turn={hidden}" in found
    found = (await async_client.get("/ui/palette?q=blimp")).content.decode()
    assert f"/chat?c=c1&amp;turn={shown}" in found


async def test_home_lists_the_questions_of_the_branch_that_is_followed(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")], [TextDelta("Two.")])
    await say("Hidden question?")
    await say("Edited question?", parentTurnId=None)
    home = (await async_client.get("/")).content.decode()
    assert ">Edited question?</a>" in home and "Hidden question?</a>" not in home
