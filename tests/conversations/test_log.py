"""What an answer writes in the log belongs to it, and to the request that asked for it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import AsyncClient

from apps.agents.events import ToolCallRequested
from apps.agents.messages import ToolCall
from apps.conversations import runner
from apps.conversations.stream import live_runs
from tests.support.chat import answers, ended
from tests.support.entries import Entries
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = pytest.mark.usefixtures("nothing_left_running")

SEARCH = ToolCallRequested(ToolCall("1", "ListIngestedRepositories", {}))


async def test_every_line_of_an_answer_tells_the_turn_and_the_request(
    scripted: Callable[..., ScriptedProvider], async_client: AsyncClient
) -> None:
    gate = Gate()
    scripted([gate, SEARCH], [])
    body = {"provider": "openai", "model": "m-1", "conversationId": "c1", "message": "canary?"}
    with Entries() as entries:
        answer: Any = await async_client.post(
            "/chat", body, content_type="application/json", headers={"x-request-id": "asked-4"}
        )
        assert answer.status_code == 202
        log = live_runs.of("c1")
        assert log is not None
        gate.open.set()
        await ended(log)
        # Its last line comes after its end.
        await runner.shutdown()
    (turn,) = await answers()
    run_entries = [e for e in entries.of("asked-4") if e["message"] != "request"]
    messages = [entry["message"] for entry in run_entries]
    assert messages[0] == "chat run started" and messages[-1] == "chat run finished"
    (usage,) = [e["context"] for e in run_entries if e["message"] == "chat tool usage"]
    assert (usage["baseUrl"], usage["callId"]) == ("http://model.test:1234", "1")
    assert [entry["context"].get("callId") for entry in run_entries].count("1") == 1
    assert {entry["context"]["turnId"] for entry in run_entries} == {str(turn.pk)}
    assert "canary" not in str(entries.all)
