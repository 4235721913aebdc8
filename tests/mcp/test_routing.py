"""The instructions of the servers name the tools that there are, and what they return."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.mcp.search import SEARCH
from tests.mcp.speech import EVERY, STATELESS, ask
from tests.support.ingested import ingest_sample

pytestmark = [pytest.mark.door]

ROUTE = re.compile(r"^- .+: (\w+)$", re.M)


def test_the_table_names_every_tool_once(configure: Callable[..., None]) -> None:
    configure(mcp_ingest=True)
    tools = [tool.name for tool in SEARCH.registry()]
    assert sorted(ROUTE.findall(SEARCH.instructions)) == sorted(tools)


@pytest.mark.django_db(transaction=True)
async def test_a_restricted_address_names_only_the_tools_that_it_offers() -> None:
    path = "/mcp?tool=Grep&tool=ReadFile"
    hello = await ask("server/discover", {}, STATELESS, path)
    listed = await ask("tools/list", {}, STATELESS, path)
    offered = {tool["name"] for tool in listed.result["tools"]}
    assert set(ROUTE.findall(hello.result["instructions"])) == offered == {"Grep", "ReadFile"}


@pytest.mark.django_db(transaction=True)
async def test_a_question_without_a_model_returns_what_its_description_says(
    configure: Callable[..., None], folder: Path
) -> None:
    configure(mcp_provider="builtin")
    await asyncio.to_thread(ingest_sample, folder)
    (tool,) = (await ask("tools/list", {}, STATELESS, "/mcp/chat")).result["tools"]
    assert "no model" in tool["description"] and "`modelId` 'search'" in tool["description"]
    params = {"name": "codebase_question", "arguments": {"question": "How long does a retry wait?"}}
    answer = (await ask("tools/call", params, EVERY[-1], "/mcp/chat")).result["structuredContent"]
    assert answer["modelId"] == "search"
    (segment,) = answer["segments"]
    assert "no language model has read it" in segment["text"]
    assert re.search(r"lighthouse/src/retry\.py:\d+-\d+", segment["text"])
