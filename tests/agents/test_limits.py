"""Limited tools: those that an agent names, for the repositories that it may search."""

from dataclasses import replace
from typing import Any

import pytest

from apps.agents import tools as agent_tools
from apps.agents.messages import ToolCall
from apps.agents.tools import execute, toolset
from apps.core.types import JSON
from apps.tools.tool import Tool
from tests.agents.fakes import found, tool

ALLOWED = ("acme", "papers")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[JSON]:
    """Record the arguments that reach the tools; each returns what the real tool would."""
    reached: list[JSON] = []
    repos = [{"id": name} for name in (*ALLOWED, "secret")]
    answers: dict[str, Any] = {"ListIngestedRepositories": {"repos": repos, "lockedModelId": None}}

    def record_calls(real: Tool) -> Tool:
        double = tool(real.name, answers.get(real.name, found()), reached)
        return replace(real, function=double.run)

    monkeypatch.setattr(agent_tools, "TOOLS", tuple(map(record_calls, agent_tools.TOOLS)))
    # The ids of the areas come from the database, which tests/tools/test_areas.py asks.
    monkeypatch.setattr(agent_tools, "with_ids", tuple)
    return reached


def named(tools: tuple[Tool, ...], name: str) -> Tool:
    return next(tool for tool in tools if tool.name == name)


def test_an_agent_has_only_the_tools_that_it_names() -> None:
    assert [tool.name for tool in toolset(names=("VectorSearch",))] == ["VectorSearch"]
    assert toolset(names=()) == ()


async def test_a_tool_that_an_agent_does_not_name_is_refused_and_never_run(
    calls: list[JSON],
) -> None:
    call = ToolCall("c", "FileOutline", {"repository": "acme", "path": "a.py"})
    result = await execute(call, toolset(names=("VectorSearch",)))
    assert result.error_code == "FORBIDDEN_TOOL"
    assert result.error_message == "'FileOutline' may not be used here; there are: VectorSearch"
    assert calls == []


def test_of_several_repositories_the_model_may_choose(calls: list[JSON]) -> None:
    search = named(toolset(ALLOWED), "VectorSearch")
    assert search.parameters["properties"]["repository"]["enum"] == ["acme", "papers"]
    assert "'acme', 'papers' only" in search.description


@pytest.mark.parametrize(
    ("requested", "searched"),
    [
        ({}, ["acme", "papers"]),
        ({"repository": None}, ["acme", "papers"]),
        ({"repository": ""}, ["acme", "papers"]),
        ({"repository": "papers"}, "papers"),
        ({"repository": ["papers"]}, ["papers"]),
    ],
)
async def test_a_search_reaches_no_other_repository(
    calls: list[JSON], requested: JSON, searched: Any
) -> None:
    result = await execute(
        ToolCall("c", "VectorSearch", {"query": "x", **requested}), toolset(ALLOWED)
    )
    assert result.ok
    assert [call["repository"] for call in calls] == [searched]


@pytest.mark.parametrize("requested", ["secret", ["acme", "secret"]])
async def test_another_repository_is_refused_with_the_list_of_allowed_ones(
    calls: list[JSON], requested: Any
) -> None:
    call = ToolCall("c", "VectorSearch", {"query": "x", "repository": requested})
    result = await execute(call, toolset(ALLOWED))
    assert result.error_code == "FORBIDDEN_REPOSITORY"
    assert "'acme', 'papers'" in (result.error_message or "")
    assert calls == []


@pytest.mark.parametrize("repositories", [("acme",), ALLOWED])
async def test_the_list_names_no_repository_beyond_the_limit(
    calls: list[JSON], repositories: tuple[str, ...]
) -> None:
    await execute(ToolCall("c", "ListIngestedRepositories"), toolset(repositories))
    assert [call["repository"] for call in calls] == [repositories]


async def test_an_outline_still_needs_its_repository(calls: list[JSON]) -> None:
    assert "repository" in named(toolset(ALLOWED), "FileOutline").parameters["required"]
    call = ToolCall("c", "FileOutline", {"repository": "secret", "path": "a.py"})
    result = await execute(call, toolset(ALLOWED))
    assert result.error_code == "FORBIDDEN_REPOSITORY"


@pytest.mark.parametrize("named_within", [{}, {"within": None}, {"within": "secret"}])
async def test_related_code_stays_within_the_limit(calls: list[JSON], named_within: JSON) -> None:
    lines = {"repository": "acme", "path": "a.py", "start_line": 1, **named_within}
    result = await execute(ToolCall("c", "RelatedCode", lines), toolset(ALLOWED))
    if named_within.get("within"):
        assert result.error_code == "FORBIDDEN_REPOSITORY"
        assert calls == []
    else:
        assert [call["within"] for call in calls] == [["acme", "papers"]]
    calls.clear()
    await execute(ToolCall("c", "RelatedCode", lines), toolset(("acme",)))
    assert [(call["repository"], call["within"]) for call in calls] == [("acme", "acme")]
