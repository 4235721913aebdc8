"""Edits of TOML: one table changes; comments, order and style of the rest stay."""

import tomllib
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from codeinfo_cli.clients.jsonc import UNSAFE, Damaged


def loads(text: str) -> dict[str, Any]:
    """Raises Damaged."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Damaged(str(error)) from None


def with_member(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """Return the text with the table `key.name`. Raises Damaged."""
    document = loads(text)
    held = document.get(key, {})
    if not isinstance(held, dict):
        raise Damaged(f"{key} is not a table")
    expected = document | {key: held | {name: value}}
    forms = (_replaced,) if name in held else (_appended, _in_front, _replaced)
    for form in forms:
        added = form(text, key, name, value)
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(added) == expected:
                return added
    raise Damaged(UNSAFE)


def _appended(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """A table at the end: not possible if `key` is written in another form."""
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text.strip() else ""
    end = "" if not text or text.endswith("\n") else newline
    table = tomlkit.dumps({key: {name: value}}).strip("\n")
    return text + end + gap + table.replace("\n", newline) + newline


def _in_front(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """A line at the beginning, for files that write `key` with dotted keys."""
    table = tomlkit.inline_table()
    table.update(value)
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"{key}.{name} = {table.as_string()}{newline}{text}"


def _replaced(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    document = _parsed(text)
    try:
        document[key][name] = value
        return str(tomlkit.dumps(document))
    except TOMLKitError as error:
        raise Damaged(str(error)) from None


def without_member(text: str, key: str, name: str) -> str:
    """Return the text without the table `key.name`. Raises Damaged."""
    held = loads(text).get(key)
    if not isinstance(held, dict) or name not in held:
        return text
    document = _parsed(text)
    del document[key][name]
    return tomlkit.dumps(document)


def _parsed(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise Damaged(str(error)) from None
