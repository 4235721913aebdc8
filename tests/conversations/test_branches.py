"""Another question or another answer begins a branch; one branch is followed."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from apps.agents.events import TextDelta, ThreadNamed
from apps.conversations import leases, queries, recovery, services
from apps.conversations.models import Conversation, Turn
from tests.conversations.tab import Tab
from tests.support.chat import append, conversation, newest_ended, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

Scripted = Callable[..., ScriptedProvider]
Ask = Callable[..., Any]
PAGE = {"c": "c1", "provider": "openai", "model": "m-1"}


async def turns(client: AsyncClient) -> list[str]:
    """What `GET /turns` answers, oldest first; also in pages of one turn."""
    items = (await client.get("/conversations/c1/turns")).json()["items"]
    paged: list[str] = []
    cursor = ""
    while True:
        path = "/conversations/c1/turns?limit=1" + (f"&cursor={cursor}" if cursor else "")
        page = (await client.get(path)).json()
        paged += [item["content"] for item in page["items"]]
        if not (cursor := page.get("nextCursor", "")):
            break
    assert paged == [item["content"] for item in items]
    return paged[::-1]


def heard(provider: ScriptedProvider) -> list[str]:
    return [m.text for m in provider.requests[-1].messages if m.role != "system"]


async def test_another_question_hides_what_followed_the_first(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    provider = scripted(*([TextDelta(text)] for text in ("One.", "Two.", "Other.", "Third.")))
    _, first = await say("First?")
    await say("Second?")
    await say("Edited?", parentTurnId=first)
    assert heard(provider) == ["First?", "One.", "Edited?"]
    assert await turns(async_client) == ["First?", "One.", "Edited?", "Other."]
    await say("Then?")
    assert heard(provider) == ["First?", "One.", "Edited?", "Other.", "Then?"]
    exported = (await async_client.get("/ui/chat/export?c=c1")).content.decode()
    assert "Edited?" in exported and "Second?" not in exported
    assert await Turn.objects.acount() == 8


async def test_another_first_question_and_another_answer(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    provider = scripted(*([TextDelta(text)] for text in ("One.", "Two.", "Three.")))
    first, _ = await say("First?")
    await say("First?", parentTurnId=first)
    assert heard(provider) == ["First?"]
    assert await turns(async_client) == ["First?", "Two."]
    await say("Anew?", parentTurnId=None)
    assert heard(provider) == ["Anew?"]
    assert await turns(async_client) == ["Anew?", "Three."]
    assert await Turn.objects.acount() == 5


@pytest.mark.parametrize("parent", ["no id", str(uuid.UUID(int=7)), "of another", "other text"])
async def test_a_parent_that_cannot_be_followed_is_refused(
    scripted: Scripted, say: Ask, ask: Ask, parent: str
) -> None:
    scripted([TextDelta("One.")])
    first, _ = await say("First?")
    message = "Another?"
    if parent == "of another":
        await conversation(id="c2")
        row = await sync_to_async(append)(conversation_id="c2", role="assistant")
        parent = str(row.pk)
    elif parent == "other text":
        parent = first
    answer = await ask(message=message, parentTurnId=parent)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_PARENT")
    assert await Turn.objects.filter(conversation="c1").acount() == 2


@pytest.mark.parametrize("parent", [7, "", ["x"], True])
async def test_a_parent_of_another_type_is_refused(ask: Ask, parent: Any) -> None:
    answer = await ask(parentTurnId=parent)
    assert answer.status_code == 400
    assert "parentTurnId must be the id of a turn, or null" in answer.content.decode()


async def test_a_run_that_is_live_refuses_a_branch_and_a_switch(
    scripted: Scripted, say: Ask, ask: Ask, async_client: AsyncClient
) -> None:
    gate = Gate()
    scripted([TextDelta("One.")], [TextDelta("Two.")], [gate, TextDelta("Three.")])
    first, answer = await say("First?")
    await say("First?", parentTurnId=first)
    await ask(message="Then?")
    await reached(gate.reached)
    fork = await ask(message="Another?", parentTurnId=answer)
    assert (fork.status_code, fork.json()["code"]) == (409, "RUN_IN_PROGRESS")
    switch = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": answer})
    assert (switch.status_code, switch["X-Problem"]) == (409, "RUN_IN_PROGRESS")
    gate.open.set()
    await newest_ended()
    assert await turns(async_client) == ["First?", "Two.", "Then?", "Three."]


async def test_of_many_branches_at_once_one_begins(
    scripted: Scripted, say: Ask, ask: Ask, async_client: AsyncClient
) -> None:
    gate = Gate()
    scripted([TextDelta("One.")], [gate, TextDelta("Two.")])
    first, _ = await say("First?")
    codes = [
        response.status_code
        for response in await asyncio.gather(
            *(ask(message="First?", parentTurnId=first) for _ in range(8))
        )
    ]
    assert sorted(codes) == [202] + [409] * 7
    gate.open.set()
    await newest_ended()
    assert await turns(async_client) == ["First?", "Two."]
    assert await Turn.objects.acount() == 3


async def test_a_switch_follows_the_newest_branch_through_a_turn(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted(*([TextDelta(text)] for text in ("One.", "Two.", "Three.")))
    first, answer = await say("First?")
    await say("Second?")
    await say("First?", parentTurnId=first)
    tab = Tab()
    shown = {answer: "ok"}
    await tab.open(**shown)
    await tab.until("Three.")
    assert "1/2" not in tab.all and "2/2" in tab.all
    before = await Conversation.objects.aget(pk="c1")
    done = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": answer})
    assert done.status_code == 204
    await tab.until("Two.")
    assert "1/2" in tab.all
    await tab.socket.disconnect()
    assert await turns(async_client) == ["First?", "One.", "Second?", "Two."]
    after = await Conversation.objects.aget(pk="c1")
    assert after.last_message_at == before.last_message_at
    for turn in ("no id", str(uuid.UUID(int=7))):
        lost = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": turn})
        assert (lost.status_code, lost["X-Problem"]) == (404, "NOT_FOUND")
    await sync_to_async(services.archive)("c1")
    gone = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": first})
    assert gone["X-Problem"] == "CONVERSATION_ARCHIVED"


async def test_a_switch_while_its_turn_is_replaced_is_refused(
    scripted: Scripted, say: Ask, async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted([TextDelta("One.")], [TextDelta("Two.")])
    first, answer = await say("First?")
    await say("First?", parentTurnId=first)

    def replaced(conversation_id: str) -> None:
        """As a run does that begins, and ends, between two statements of the switch."""
        Conversation.objects.update(head=uuid.uuid4())
        Turn.objects.filter(pk=answer).delete()

    monkeypatch.setattr(leases, "check_idle", replaced)
    switch = await async_client.post("/ui/chat/branch", {"c": "c1", "turn": answer})
    assert (switch.status_code, switch["X-Problem"]) == (409, "RUN_IN_PROGRESS")


async def test_the_page_edits_and_asks_again_with_the_scope_of_the_question(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    provider = scripted(*([TextDelta(text)] for text in ("One.", "Two.", "Three.", "Four.")))
    first, _ = await say("First?\nIn two lines", scope=["harbour"])
    await say("Second?", scope=[])
    form = PAGE | {"message": "as the page has it", "again": first, "scope": "quay"}
    assert (await async_client.post("/ui/chat/send", form)).status_code == 200
    await newest_ended()
    assert [area.repository for area in provider.requests[-1].areas] == ["harbour"]
    assert (await Conversation.objects.aget(pk="c1")).flags["scope"] == []
    assert await turns(async_client) == ["First?\nIn two lines", "Three."]
    page = (await async_client.get("/chat?c=c1")).content.decode()
    assert 'data-scope="[[&quot;harbour&quot;, &quot;harbour&quot;]]"' in page
    assert page.count("Versions of the answer") == 1 and "2/2" in page


async def test_a_form_without_a_question_to_ask_again_sends_its_message(
    scripted: Scripted, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")])
    await async_client.post("/ui/chat/send", PAGE | {"message": "First?", "again": ""})
    await newest_ended()
    assert await turns(async_client) == ["First?", "One."]


async def test_each_branch_has_its_thread_of_codex(scripted: Scripted, say: Ask) -> None:
    names = ("one", "one", "two", "one")
    codex = scripted(*([ThreadNamed(name), TextDelta(name)] for name in names), id="codex")
    _, first = await say("First?", provider="codex")
    _, second = await say("Second?", provider="codex")
    await say("Edited?", provider="codex", parentTurnId=first)
    await sync_to_async(services.follow)("c1", second)
    await say("Third?", provider="codex")
    threads = [request.flags.get("threadId") for request in codex.requests]
    assert threads == [None, "one", None, "one"]


async def test_a_request_that_repeats_the_thread_does_not_take_it_to_another_branch(
    scripted: Scripted, say: Ask
) -> None:
    names = ("one", "two", "two")
    codex = scripted(*([ThreadNamed(name), TextDelta(name)] for name in names), id="codex")
    first, _ = await say("First?", provider="codex")
    await say("First?", provider="codex", parentTurnId=first, threadId="one")
    await say("Second?", provider="codex", threadId="two")
    assert [request.flags.get("threadId") for request in codex.requests] == [None, None, "two"]


async def test_a_search_finds_a_hidden_branch_and_leads_to_it(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("A zeppelin.")], [TextDelta("Two.")])
    first, answer = await say("First?")
    await say("First?", parentTurnId=first)
    found = (await async_client.get("/ui/chat/sidebar?q=zeppelin")).content.decode()
    assert f"/chat?c=c1&amp;turn={answer}" in found


async def test_a_delete_takes_all_branches(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")])
    await say("First?")
    await say("Anew?", parentTurnId=None)
    await sync_to_async(services.delete)(["c1"])
    assert not await Turn.objects.aexists()


async def test_an_appended_turn_follows_the_branch(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")], [TextDelta("Two.")])
    _, first = await say("First?")
    await say("Anew?", parentTurnId=None)
    await sync_to_async(services.follow)("c1", first)
    body = {"role": "user", "content": "Noted.", "model": "m", "provider": "openai", "status": "ok"}
    path = "/conversations/c1/turns"
    assert (await async_client.post(path, body, content_type="application/json")).status_code == 201
    assert await turns(async_client) == ["First?", "One.", "Noted."]


async def test_a_delete_while_a_branch_runs_leaves_nothing(
    scripted: Scripted, say: Ask, ask: Ask
) -> None:
    gate = Gate()
    scripted([TextDelta("One.")], [gate, TextDelta("Two.")])
    first, _ = await say("First?")
    await ask(message="First?", parentTurnId=first)
    await reached(gate.reached)
    await sync_to_async(services.delete)(["c1"])
    gate.open.set()
    await newest_ended()
    assert not await Turn.objects.aexists()


async def test_a_process_that_was_killed_before_the_head_moved_leaves_a_branch(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    """As on a database without transactions: the turns are there, and the head is the old one."""
    scripted([TextDelta("One.")])
    _, first = await say("First?")
    host = recovery.owner().split("/")[0]
    fields: dict[str, Any] = {"conversation_id": "c1", "provider": "openai", "model": "m-1"}
    asked = await Turn.objects.acreate(
        role="user", parent=first, parts=[{"type": "text", "text": "Second?"}], **fields
    )
    await Turn.objects.acreate(
        role="assistant", parent=asked.pk, status="running", owner=f"{host}/4194305/abc", **fields
    )
    await Conversation.objects.aupdate(flags={"threadId": "of the old head"})
    await asyncio.to_thread(recovery.recover)
    assert (await Conversation.objects.aget()).flags == {}
    kept = (await async_client.get("/conversations/c1/turns")).json()["items"]
    assert [turn["content"] for turn in kept[::-1]][:3] == ["First?", "One.", "Second?"]
    assert kept[0]["error"]["code"] == "INTERRUPTED"


async def test_a_head_that_names_nothing_hides_nothing(
    scripted: Scripted, say: Ask, async_client: AsyncClient
) -> None:
    scripted([TextDelta("One.")], [TextDelta("Two.")])
    await say("First?")
    await Conversation.objects.filter(pk="c1").aupdate(head=uuid.uuid4())
    assert await turns(async_client) == ["First?", "One."]


async def test_a_long_conversation_is_walked_in_few_queries(
    async_client: AsyncClient, django_assert_max_num_queries: Any
) -> None:
    await conversation()
    fields = {"conversation_id": "c1", "provider": "openai", "model": "m-1", "role": "user"}
    ids = [uuid.uuid4() for _ in range(3_000)]
    parents = [None, *ids[:-1]]
    rows = [Turn(pk=pk, parent=parent, **fields) for pk, parent in zip(ids, parents, strict=True)]
    rows += [Turn(parent=ids[1_000], **fields) for _ in range(2_000)]
    await Turn.objects.abulk_create(rows)
    await Conversation.objects.filter(pk="c1").aupdate(head=ids[-1])
    count = await sync_to_async(_pages)(django_assert_max_num_queries)
    assert count == 3_000


def _pages(at_most: Any) -> int:
    with at_most(4):
        assert len(queries.turns_page("c1", 50).items) == 50
    with at_most(4):
        return len(queries.turns("c1"))
