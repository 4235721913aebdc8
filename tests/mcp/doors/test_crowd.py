"""Many callers at once, and callers who hang up: over a socket, with a model that is slow."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from apps.core.types import JSON
from tests.browser.product import Product, running
from tests.stand_ins.openai_scripts import Delta, Script, Stall, end, question, say
from tests.stand_ins.openai_server import OpenAIStandIn

pytestmark = pytest.mark.door


CALLERS = 100
PATIENCE = 60
JSON_ONLY = "application/json"
STREAM = "application/json, text/event-stream"


class Crowd:
    """A model that answers nobody before all are there, and then takes a second and more."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.complete = threading.Event()

    def echoes(self, request: JSON) -> list[Any]:
        message = question(request)
        self.questions.append(message)
        if len(self.questions) == CALLERS:
            self.complete.set()
        return [Delta({"content": ""}, 1.2), *say(f"You asked: {message}", 40), *end()]


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd()


@pytest.fixture(scope="module")
def model(crowd: Crowd) -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn(pace=1.0) as server:
        server.models = ["echo", "half"]
        server.scripts |= {
            "echo": Script([crowd.echoes]),
            "half": Script([[*say("half"), Stall()]]),
        }
        yield server


@pytest.fixture(scope="module")
def product(model: OpenAIStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    config = {"CODEINFO_OPENAI_BASE_URL": model.url, "CODEINFO_MCP_PROVIDER": "openai"}
    with running(tmp_path_factory.mktemp("crowd"), **config) as served:
        yield served


def asking(text: str, **more: str) -> JSON:
    """A call of codebase_question, with a token for progress."""
    params = {
        "name": "codebase_question",
        "arguments": {"question": text, **more},
        "_meta": {"progressToken": text},
    }
    return {"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params}


def answered(response: httpx.Response) -> JSON:
    """The answer to a call, whether it came alone or at the end of a stream."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == "application/json":
        return dict(response.json())
    frames = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return dict(json.loads(frames[-1]))


async def test_a_hundred_questions_at_once_each_get_their_own_answer(
    product: Product, model: OpenAIStandIn, crowd: Crowd
) -> None:
    """Half of the callers listen to a stream, and half come through the port of its own."""
    doors = (f"{product.url}/mcp/chat", own_port(product))
    limits = httpx.Limits(max_connections=None)
    model.hold()
    async with httpx.AsyncClient(timeout=PATIENCE, limits=limits) as http:
        calls = [
            asyncio.create_task(
                http.post(
                    doors[number % 2],
                    json=asking(f"Question {number}?"),
                    headers={"accept": (STREAM, JSON_ONLY)[number // 2 % 2]},
                )
            )
            for number in range(CALLERS)
        ]
        # All of them are with the model before it answers the first.
        assert await asyncio.to_thread(crowd.complete.wait, PATIENCE)
        model.release()
        answers = [answered(response) for response in await asyncio.gather(*calls)]
    for number, answer in enumerate(answers):
        assert answer["id"] == f"Question {number}?"
        assert "result" in answer, answer
        result = answer["result"]["structuredContent"]
        assert result["segments"][0]["text"] == f"You asked: Question {number}?"
    conversations = {a["result"]["structuredContent"]["conversationId"] for a in answers}
    assert len(conversations) == CALLERS
    assert len(set(crowd.questions)) == CALLERS


def own_port(product: Product) -> str:
    base, _, port = product.url.rpartition(":")
    return f"{base}:{int(port) + 1}/"


@pytest.mark.parametrize("accept", [JSON_ONLY, STREAM])
async def test_hanging_up_stops_the_model_and_keeps_what_was_said(
    product: Product, model: OpenAIStandIn, accept: str
) -> None:
    conversation = f"hang-up-{len(accept)}"
    body = asking("Why?", model="half", conversationId=conversation)
    turns = f"{product.url}/conversations/{conversation}/turns"
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        call = asyncio.create_task(
            http.post(f"{product.url}/mcp/chat", json=body, headers={"accept": accept})
        )
        async with asyncio.timeout(PATIENCE):
            while (await http.get(turns)).json().get("inflight", {}).get("assistantText") != "half":
                assert not call.done(), call.result().text
        exchange = model.chats[-1]
        call.cancel()
        assert await asyncio.to_thread(exchange.client_left.wait, PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while "inflight" in (await http.get(turns)).json():
                pass
        last = (await http.get(turns)).json()["items"][0]
    assert (last["status"], last["content"]) == ("stopped", "half")
