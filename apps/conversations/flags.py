"""The form fields of the Codex flags (docs/contract.md §2.2, §10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from apps.agents.providers.codex.flags import EFFORT, FLAGS, CodexFlag, chosen
from apps.core.errors import InvalidInput
from apps.core.principal import current

# The key of the thread of Codex.
THREAD = "threadId"
# Posted by every form with the panel: an unchecked checkbox posts nothing.
SHOWN = "flags"


@dataclass(frozen=True)
class FlagField:
    """A field of the panel.

    value: the current value; True or False for a checkbox.
    options: (value, label) of a list; empty for a checkbox.
    """

    flag: CodexFlag
    value: str | bool
    options: Sequence[tuple[str, str]] = ()

    @property
    def is_disabled(self) -> bool:
        return self.flag.for_staff and not current().is_staff


def fields(flags: Mapping[str, Any], efforts: Sequence[str] = ()) -> list[FlagField]:
    """The fields of the panel, lists first.

    efforts: the efforts that the model accepts; empty: unknown, so offer all.
    """
    values = chosen(flags)
    panel = [FlagField(flag, values[flag.name], _options(flag, efforts)) for flag in FLAGS]
    return sorted(panel, key=lambda item: not item.options)


def summary(panel: Sequence[FlagField]) -> str:
    """The values in one line: `Workspace write · On failure · High · network access`. The page
    writes it again when one of them changes (static/js/chat/flags.js)."""
    lists = [item.flag.choices[str(item.value)] for item in panel if item.options]
    boxes = [item.flag.label.removeprefix("Enable ") for item in panel if item.value is True]
    return " · ".join(lists + boxes)


def merged(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of a conversation after a request. Raises InvalidInput FORBIDDEN.

    Codex keeps the threads of all users in one home, so only staff may name one; others may repeat
    that of the conversation.
    """
    for flag in FLAGS:
        flag.check_right(sent.get(flag.name))
    if sent.get(THREAD) not in (None, stored.get(THREAD)) and not current().is_staff:
        raise InvalidInput("threadId must be that of the conversation.", code="FORBIDDEN")
    return {**stored, **sent}


def of_branch(stored: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of a conversation that follows another branch. `last`: flags of its last turn. The
    thread of Codex has the messages of one branch only."""
    return {name: stored[name] for name in stored if name != THREAD} | {
        name: last[name] for name in (THREAD,) if name in last
    }


def posted(form: QueryDict) -> dict[str, Any]:
    """The flags of a posted form; {} if it has no panel. Raises InvalidInput."""
    if SHOWN not in form:
        return {}
    flags = {flag.name: flag.read(form.get(flag.name)) for flag in FLAGS}
    for flag in FLAGS:
        flag.check(flags[flag.name])
    return flags


def _options(flag: CodexFlag, efforts: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (value, label + (" (default)" if value == flag.default else ""))
        for value, label in flag.choices.items()
        if flag is not EFFORT or not efforts or value in efforts or value == flag.default
    ]
