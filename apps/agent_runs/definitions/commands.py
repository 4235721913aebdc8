"""Command files: `{"Description": …, "items": [{"type", "role", "content": [lines]}]}`, strict.

Each item is one step: its content, trimmed and joined by line breaks, is one instruction.
"""

import json
from typing import Any

from apps.agent_runs.definitions.types import Command
from apps.core.errors import InvalidInput

# What an item must say besides its content (docs/contract.md §7).
FIXED = {"type": "message", "role": "user"}


def parse(name: str, text: str) -> Command:
    """Raises InvalidInput with what is wrong."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"it is no JSON ({error})") from error
    _only(body, "it", ("Description", "items"))
    items = body["items"]
    if not isinstance(items, list) or not items:
        raise InvalidInput("items must be a list of one step at least")
    steps = tuple(_step(item, f"items[{index}]") for index, item in enumerate(items))
    return Command(name, _text(body["Description"], "Description"), steps)


def _step(item: Any, where: str) -> str:
    _only(item, where, (*FIXED, "content"))
    for key, value in FIXED.items():
        if item[key] != value:
            raise InvalidInput(f"{where}.{key} must be {value!r}")
    lines = item["content"]
    if not isinstance(lines, list) or not lines:
        raise InvalidInput(f"{where}.content must be a list of one text at least")
    return "\n".join(_text(line, f"{where}.content[{index}]") for index, line in enumerate(lines))


def _only(value: Any, where: str, keys: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} must be an object")
    for key in keys:
        if key not in value:
            raise InvalidInput(f"{where} lacks {key!r}")
    if unknown := [key for key in value if key not in keys]:
        raise InvalidInput(f"{where} has an unknown key {unknown[0]!r}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{where} must be a text that is not blank")
    return value.strip()
