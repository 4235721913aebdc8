"""The thread of Codex that a question names: Codex keeps those of all users in one home."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.agents.events import TextDelta, ThreadNamed
from apps.conversations.models import Conversation
from apps.conversations.stream import live_runs
from tests.support.chat import ended
from tests.support.scripted import ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

BODY = {"provider": "codex", "model": "m-1", "message": "Why?"}


async def post(client: AsyncClient, conversation: str, **fields: Any) -> Any:
    body = BODY | {"conversationId": conversation} | fields
    answer = await client.post("/chat", body, content_type="application/json")
    log = live_runs.of(conversation)
    if log is not None:
        await ended(log)
    return answer


async def test_a_user_continues_only_the_thread_of_the_own_conversation(
    scripted: Callable[..., ScriptedProvider], configure: Callable[..., None]
) -> None:
    configure(require_login=True)
    codex = scripted([ThreadNamed("hers"), TextDelta("an answer")], id="codex")
    ada, bob, staff = (AsyncClient() for _ in range(3))
    for client, name in ((ada, "ada"), (bob, "bob"), (staff, "staff")):
        await client.aforce_login(
            await User.objects.acreate(username=name, is_staff=client is staff)
        )
    assert (await post(ada, "c1")).status_code == 202
    assert (await Conversation.objects.aget(pk="c1")).flags["threadId"] == "hers"
    assert (await post(ada, "c1", threadId="hers")).status_code == 202
    for conversation in ("c2", "c3"):
        stolen = await post(bob, conversation, threadId="hers")
        assert (stolen.status_code, stolen.json()["code"]) == (403, "FORBIDDEN")
        assert not await Conversation.objects.filter(pk=conversation).aexists()
    assert (await post(staff, "c4", threadId="hers")).status_code == 202
    assert [request.flags.get("threadId") for request in codex.requests] == [None, "hers", "hers"]
