"""`/mcp?tool=…&repository=…`: what our own Codex is given of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apps.agents import tools
from apps.core.errors import NotFound
from apps.core.types import JSON
from tests.mcp.speech import EVERY, ask

pytestmark = pytest.mark.django_db

NARROW = "/mcp?tool=VectorSearch&tool=FileOutline&repository=acme"


async def names(address: str) -> list[str]:
    return [tool["name"] for tool in (await ask("tools/list", {}, path=address)).result["tools"]]


async def test_only_named_tools_that_read_are_listed() -> None:
    assert await names(NARROW) == ["VectorSearch", "FileOutline"]
    assert "reingest_repository" in await names("/mcp")
    assert await names("/mcp?tool=reingest_repository") == []
    assert "reingest_repository" not in await names("/mcp?repository=acme")


async def test_a_single_repository_is_not_a_parameter() -> None:
    (search, _) = (await ask("tools/list", {}, path=NARROW)).result["tools"]
    assert "repository" not in search["inputSchema"]["properties"]


@pytest.mark.parametrize("version", EVERY)
async def test_errors_of_a_tool_are_results_in_every_revision(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(arguments: Mapping[str, Any]) -> JSON:
        raise NotFound("There is no such repository.", code="REPO_NOT_FOUND")

    search = next(tool for tool in tools.TOOLS if tool.name == "VectorSearch")
    monkeypatch.setattr(tools, "TOOLS", (replace(search, function=refuse),))
    params = {"name": "VectorSearch", "arguments": {"query": "retry"}}
    answer = await ask("tools/call", params, version, NARROW)
    assert answer.result["isError"] is True
    assert answer.result["content"][0]["text"].startswith("REPO_NOT_FOUND: There is no")
