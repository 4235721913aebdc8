"""The progress text of a running answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.conversations.parts import Part
from apps.tools.tools import TOOLS_BY_NAME

LONGEST_QUERY = 80


def describe_step(parts: Sequence[Part]) -> str:
    """Describe the last part of an answer: `Searching for 'retries'`, `Thinking`."""
    if not parts:
        return "Waiting for the model"
    last = parts[-1]
    match last["type"]:
        case "reasoning":
            return "Thinking"
        case "text":
            return "Writing the answer"
    return TOOL_STAGES[last["stage"]](last)


def _started(part: Part) -> str:
    parameters: Mapping[str, Any] = part["parameters"]
    tool = TOOLS_BY_NAME.get(part["name"])
    if tool is not None and not tool.subject:
        return tool.progress
    if tool is not None and (value := parameters.get(tool.subject)):
        return f"{tool.progress} {_shortened(str(value))!r}"
    return f"Running {part['name']}"


def _succeeded(part: Part) -> str:
    result = part["result"]
    results = result.get("results") if isinstance(result, Mapping) else None
    if not isinstance(results, list):
        return f"{part['name']} is done, thinking on"
    return f"Found {len(results)} result{'' if len(results) == 1 else 's'}, thinking on"


def _failed(part: Part) -> str:
    code = (part["error"] or {}).get("code", "ERROR")
    return f"{part['name']} failed ({code}), thinking on"


TOOL_STAGES = {"started": _started, "success": _succeeded, "error": _failed}


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUERY else line[: LONGEST_QUERY - 1] + "…"
