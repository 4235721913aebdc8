"""Every argument of every tool is bounded, and described so that any client can read it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from apps.mcp.agents import AGENTS
from apps.mcp.chat import CHAT
from apps.mcp.search import SEARCH
from apps.mcp.types import McpTool
from tests.mcp.speech import EVERY, ask, call

JSON = dict[str, Any]
ENDPOINTS = {"/mcp": SEARCH, "/mcp/chat": CHAT, "/mcp/agents": AGENTS}
TOOLS = [(path, tool) for path, endpoint in ENDPOINTS.items() for tool in endpoint.registry()]


def schemas(schema: JSON) -> Iterator[JSON]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from schemas(each)


def longest(schema: JSON) -> Iterator[tuple[str, int]]:
    """Argument and its maximum length, for each text that is not one of a few words."""
    for name, each in schema["properties"].items():
        for inner in schemas(each):
            if inner.get("type") == "string" and not {"enum", "const"} & inner.keys():
                yield name, inner["maxLength"]


@pytest.mark.parametrize(("path", "tool"), TOOLS, ids=lambda value: getattr(value, "name", ""))
def test_every_text_has_a_maximum_length_and_no_schema_a_list_of_types(
    path: str, tool: McpTool
) -> None:
    # A patch of Impact may be as long as a body.
    assert all(length <= 1_000_000 for _, length in longest(tool.input_schema))
    for schema in (tool.input_schema, tool.output_schema or {}):
        assert not [each for each in schemas(schema) if isinstance(each.get("type"), list)]


LONGEST = {
    (path, tool.name, name): length
    for path, tool in TOOLS
    for name, length in longest(tool.input_schema)
    if name != "cursor"  # refused as no cursor, whatever its length: tests/tools/test_paging.py
}


@pytest.mark.parametrize(("path", "tool", "name"), LONGEST)
async def test_a_longer_text_is_refused_by_its_name(
    path: str, tool: str, name: str, db: None
) -> None:
    schema = next(t.input_schema for p, t in TOOLS if (p, t.name) == (path, tool))
    arguments = dict.fromkeys(schema.get("required", ()), "x")
    arguments[name] = "x" * (LONGEST[path, tool, name] + 1)
    params = {"name": tool, "arguments": arguments}
    result = (await ask("tools/call", params, EVERY[-1], path)).result
    assert result["isError"]
    text = result["content"][0]["text"]
    assert "VALIDATION_FAILED" in text
    assert name in text


@pytest.mark.parametrize("tool", ["vector-search", "symbol-definitions", "file-outline"])
def test_the_http_api_refuses_a_longer_path(tool: str, client: Client, db: None) -> None:
    body = {"query": "x", "name": "x", "repository": "x", "path": "x" * 50_001}
    answer = client.post(f"/tools/{tool}", body, content_type="application/json")
    assert answer.status_code == 400
    assert "path must have at most 1,000 characters" in answer.content.decode()


async def test_a_list_of_too_many_or_too_long_repositories_is_refused(db: None) -> None:
    for repositories in (["x"] * 101, ["x" * 256]):
        answer = await call("VectorSearch", EVERY[-1], query="x", repository=repositories)
        assert "VALIDATION_FAILED" in answer.result["content"][0]["text"]
