"""The product with the real Codex, whose models do whatever a text tells them: nothing happens.

Each model that Codex lists is told the same in the chat, in an MCP question and in an agent.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agents.codex.orders import (
    HARMLESS,
    LIST_NESTED,
    REFUSED,
    Order,
    answers,
    attack,
    offered,
)
from tests.browser.product import Product, running
from tests.stand_ins.responses_scripts import OBEDIENT
from tests.stand_ins.responses_server import ResponsesStandIn, write_login
from tests.support.agents import make_agent

pytestmark = pytest.mark.door

TOKEN = {"Authorization": "Bearer CANARY-token"}
PATIENCE = 120


@dataclass(frozen=True)
class World:
    product: Product
    api: ResponsesStandIn
    home: Path
    agents: Path
    target: Path

    def post(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        url = f"{self.product.url}{path}"
        return httpx.post(url, json=body, headers=TOKEN | headers, timeout=PATIENCE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("orders")
    config = {
        "CODEINFO_CODEX_HOME": str(folder / "codex"),
        "CODEINFO_AGENTS_HOME": str(folder / "agents"),
        "CODEINFO_MCP_TOKEN": "CANARY-token",
        "CODEINFO_API_TOKEN": "CANARY-token",
        "CODEINFO_REQUIRE_LOGIN": "true",
        "CODEINFO_MCP_PROVIDER": "codex",
        "MCP_FORCE_CODEX_AVAILABLE": "",
    }
    with ResponsesStandIn() as api, tempfile.TemporaryDirectory(dir="/var/tmp") as target:
        write_login(folder / "codex", api.url)
        make_agent(folder / "agents", "reader")
        with running(folder, **config) as product:
            yield World(product, api, folder / "codex", folder / "agents", Path(target))


def models(world: World) -> list[str]:
    url = f"{world.product.url}/chat/models?provider=codex"
    listed = httpx.get(url, headers=TOKEN, timeout=PATIENCE).json()
    return [model["key"] for model in listed["models"]]


def in_chat(world: World, model: str, text: str) -> None:
    body = {"provider": "codex", "model": model, "message": text}
    body |= {"conversationId": f"chat-{model}", "sandboxMode": "danger-full-access"}
    answer = world.post("/chat", body, Accept="text/event-stream")
    assert '"complete"' in answer.text, answer.text


def in_mcp_question(world: World, model: str, text: str) -> None:
    """The model of an MCP question is the first of Codex's settings."""
    write_login(world.home, world.api.url)
    file = world.home / "config.toml"
    file.write_text(f'model = "{model}"\n{file.read_text()}')
    params = {"name": "codebase_question", "arguments": {"question": text}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = world.post("/mcp/chat", message)
    assert "Done." in answer.text, answer.text


def in_agent(world: World, model: str, text: str) -> None:
    file = world.agents / "reader" / "config.toml"
    file.write_text(f'model = "{model}"\n')
    params = {"name": "run_agent_instruction"}
    params |= {"arguments": {"agentName": "reader", "instruction": text}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = world.post("/mcp/agents", message)
    assert "Done." in answer.text, answer.text


@pytest.mark.parametrize("door", [in_chat, in_mcp_question, in_agent])
def test_no_model_does_more_than_search_whatever_it_is_told(world: World, door: Any) -> None:
    orders: list[Order] = [LIST_NESTED, *attack(str(world.target / "planted"))]
    listed = models(world)
    assert len(listed) >= 8
    for model in listed:
        world.api.scripts[model] = OBEDIENT
        before = len(world.api.requests)
        door(world, model, json.dumps(orders))
        sent = world.api.requests[before:]
        assert {request.body["model"] for request in sent} == {model}
        assert len(sent) == len(orders) + 1, "no helper asked, and nothing after the end"
        for order, answer in zip(orders[1:], answers(world.api)[1:], strict=True):
            assert REFUSED.search(answer), (model, order, answer)
        assert offered(sent[-1].body) <= HARMLESS, model
    assert not os.listdir(world.target)
    assert not os.listdir(world.product.data / "codex" / "work")
