"""Progress in plain words."""

from typing import Any

import pytest

from apps.mcp.steps import describe_step


def tool(name: str, stage: str = "started", **more: Any) -> dict[str, Any]:
    fields = {"parameters": {}, "result": None, "error": None}
    return {"type": "tool", "name": name, "stage": stage, **fields, **more}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "reasoning", "text": "hm"}, "Thinking"),
        ({"type": "text", "text": "It"}, "Writing the answer"),
        (tool("ListIngestedRepositories"), "Looking up which repositories there are"),
        (tool("VectorSearch", parameters={"query": "a\n b"}), "Searching for 'a b'"),
        (tool("VectorSearch", parameters={"query": "x" * 81}), f"Searching for '{'x' * 79}…'"),
        (tool("VectorSearch"), "Running VectorSearch"),
        (tool("FindReferences", parameters={"name": "f"}), "Looking up where it is used: 'f'"),
        (tool("Other", parameters={"query": "q"}), "Running Other"),
        (tool("VectorSearch", "success", result={"results": [{}]}), "Found 1 result, thinking on"),
        (tool("VectorSearch", "success", result={"results": []}), "Found 0 results, thinking on"),
        (tool("Other", "success", result="text"), "Other is done, thinking on"),
        (
            tool("Other", "error", error={"code": "BUSY", "message": "no"}),
            "Other failed (BUSY), thinking on",
        ),
    ],
)
def test_each_kind_of_part_is_described(part: dict[str, Any], words: str) -> None:
    assert describe_step([{"type": "text", "text": "before"}, part]) == words


def test_without_parts_the_model_is_awaited() -> None:
    assert describe_step([]) == "Waiting for the model"
