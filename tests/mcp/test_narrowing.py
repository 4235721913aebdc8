"""`/mcp?tool=…&repository=…`: what our own Codex is given of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apps.agents import tools
from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.retrieval.query import MAX_AREAS
from tests.mcp.speech import EVERY, STATELESS, ask

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


MANY = "&".join(f"area=acme%09src/{number}.py" for number in range(MAX_AREAS))


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (f"{MANY}&area=other", "Choose at most 100 repositories and paths."),
        (f"area={'a' * 256}", "repository must have at most 255 characters"),
        (f"area=acme%09{'a' * 1_001}", "path must have at most 1,000 characters"),
        ("area=acme%09../secret", "path must not hold .."),
        ("area=ac%00me", "repository must not hold a NUL"),
        ("area=acme%09a%00", "path must not hold a NUL"),
        ("area=", "an area needs a repository or a path"),
        ("&".join(["repository=acme"] * 101), "repository must have at most"),
        ("&".join(["tool=Grep"] * 101), "at most 100 tools can be named"),
        ("repository=acme&area=other", "'other' may not be looked into here"),
    ],
)
async def test_a_query_string_that_cannot_be_used_is_refused(
    version: str, query: str, problem: str
) -> None:
    for method in ("tools/list", "tools/call"):
        params = {"name": "Grep", "arguments": {"pattern": "x"}} if method == "tools/call" else {}
        answer = await ask(method, params, version, f"/mcp?{query}")
        assert answer.status == (400 if version == STATELESS else 200)
        assert (answer.error["code"], answer.json["id"]) == (-32602, 1)
        assert problem in answer.error["data"]["message"]


async def test_as_many_areas_as_are_allowed_can_be_named() -> None:
    assert "Grep" in await names(f"/mcp?{MANY}")
