"""Edits of YAML: one member of a mapping in block style changes; all other lines stay."""

import re
from typing import Any

from codeinfo_cli.clients.jsonc import UNSAFE, Damaged


def loads(text: str) -> dict[str, Any]:
    """Return the document; a member without a value is an empty mapping. Raises Damaged."""
    import yaml  # noqa: PLC0415 - the server needs it for one client only

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Damaged(" ".join(str(error).split())[:200]) from None
    if not isinstance(document or {}, dict):
        raise Damaged("it is not a mapping")
    return {key: {} if value is None else value for key, value in (document or {}).items()}


def with_member(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """Return the text with the mapping `key.name`. The caller compares it. Raises Damaged."""
    import yaml  # noqa: PLC0415 - see above

    text = without_member(text, key, name)
    held = loads(text).get(key, {})
    if not isinstance(held, dict):
        raise Damaged(f"{key} is not a mapping")
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    start = _start(lines, key)
    if start is None:
        lines.append(f"{key}:{newline}")
        start = len(lines) - 1
    # An empty mapping may be written `{}`.
    lines[start] = re.sub(r"\{\s*\}", "", lines[start]) if not held else lines[start]
    indent = next((_indent(line) for line in lines[start + 1 :] if _is_content(line)), 0) or 2
    dumped = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000)
    block = [" " * indent + line + newline for line in dumped.splitlines()]
    return "".join([*lines[: start + 1], *block, *lines[start + 1 :]])


def without_member(text: str, key: str, name: str) -> str:
    """Return the text without the mapping `key.name`. Raises Damaged."""
    held = loads(text).get(key)
    if not isinstance(held, dict) or name not in held:
        return text
    lines = text.splitlines(keepends=True)
    start = _start(lines, key)
    begin = re.compile(rf"[ ]+(['\"]?){re.escape(name)}\1[ ]*:")
    first = (
        None
        if start is None
        else next((at for at in range(start + 1, len(lines)) if begin.match(lines[at])), None)
    )
    if first is None:
        raise Damaged(UNSAFE)
    end = first + 1
    while end < len(lines) and _indent(lines[end]) > _indent(lines[first]):
        end += 1
    return "".join(lines[:first] + lines[end:])


def _start(lines: list[str], key: str) -> int | None:
    """The line in which a member at the top begins."""
    begin = re.compile(rf"(['\"]?){re.escape(key)}\1[ ]*:")
    return next((at for at, line in enumerate(lines) if begin.match(line)), None)


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
