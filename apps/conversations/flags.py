"""The Codex flags as the page shows and posts them (docs/contract.md §2.2, §10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from apps.agents.providers.codex.flags import EFFORT, FLAGS, CodexFlag, chosen
from apps.core.errors import InvalidInput

# A form that was drawn with the panel says so: an unticked box posts nothing.
SHOWN = "flags"


@dataclass(frozen=True)
class Row:
    """One flag of the panel and what it is set to; `options` are (value, label), none for a box."""

    flag: CodexFlag
    value: str | bool
    options: Sequence[tuple[str, str]] = ()


def rows(flags: Mapping[str, Any], efforts: Sequence[str] = ()) -> list[Row]:
    """The panel, lists first. Only `efforts` are offered, where the model says which it takes."""
    values = chosen(flags)
    made = [Row(flag, values[flag.name], _options(flag, efforts)) for flag in FLAGS]
    return sorted(made, key=lambda row: not row.options)


def summary(made: Sequence[Row]) -> str:
    """What is set, in a line: `Workspace write · On failure · High · network · web search`."""
    lists = [row.flag.choices[str(row.value)] for row in made if row.options]
    boxes = [BOX_WORDS[row.flag.name] for row in made if row.value is True]
    return " · ".join(lists + boxes)


BOX_WORDS = {"networkAccessEnabled": "network", "webSearchEnabled": "web search"}


def posted(form: QueryDict) -> dict[str, Any]:
    """The flags of a form that showed the panel, none of another. Raises InvalidInput."""
    if SHOWN not in form:
        return {}
    flags = {flag.name: flag.read(form.get(flag.name)) for flag in FLAGS}
    for flag in FLAGS:
        if not flag.allows(flags[flag.name]):
            raise InvalidInput(flag.rule)
    return flags


def _options(flag: CodexFlag, efforts: Sequence[str]) -> list[tuple[str, str]]:
    offered = [
        value
        for value in flag.choices
        if flag is not EFFORT or not efforts or value in efforts or value == flag.default
    ]
    return [(value, _label(flag, value)) for value in offered]


def _label(flag: CodexFlag, value: str) -> str:
    return flag.choices[value] + (" (default)" if value == flag.default else "")
