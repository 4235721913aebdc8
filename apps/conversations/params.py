"""Parse the query strings of the conversation routes strictly (docs/contract.md §1.2)."""

import re
from collections.abc import Callable
from typing import Any

from django.http import QueryDict

from apps.conversations.paging import Cursor
from apps.conversations.queries import STATES
from apps.conversations.serializers import refused
from apps.conversations.tags import normalised
from apps.core.errors import InvalidInput
from apps.core.values.surrogates import is_storable

# JavaScript clients may send 5.0 for a whole number.
WHOLE = re.compile(r"-?\d{1,9}(\.0*)?")

Read = Callable[[str], Any]


def clamped(most: int) -> Read:
    """A parser of whole numbers, clamped to 1..most."""

    def read(text: str) -> int:
        if not WHOLE.fullmatch(text):
            raise InvalidInput("must be a whole number")
        return max(1, min(most, int(float(text))))

    return read


def boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidInput("must be true or false")
    return text == "true"


def storable(text: str) -> str:
    if not is_storable(text):
        raise InvalidInput("holds characters that cannot be stored")
    return text


def state(text: str) -> str:
    if text.lower() not in STATES:
        raise InvalidInput(f"state must be one of: {', '.join(STATES)}")
    return text.lower()


CONVERSATIONS: dict[str, Read] = {
    "limit": clamped(100),
    "cursor": Cursor.parse,
    "archived": boolean,
    "agentName": storable,
    "tag": normalised,
}
TURNS: dict[str, Read] = {"limit": clamped(200), "cursor": Cursor.parse}


def read(query: QueryDict, readers: dict[str, Read]) -> dict[str, Any]:
    """The values of a query string. Raises InvalidInput `validation_error`, all problems by key."""
    values: dict[str, Any] = {}
    problems: dict[str, list[str]] = {}
    for name, texts in query.lists():
        try:
            values[name] = _one(readers, name, texts)
        except InvalidInput as error:
            problems[name] = [error.message]
    if problems:
        raise refused(problems)
    return values


def _one(readers: dict[str, Read], name: str, texts: list[str]) -> Any:
    if name not in readers:
        raise InvalidInput("Unknown key.")
    if len(texts) != 1:
        raise InvalidInput("must be given once")
    return readers[name](texts[0])


def conversations(query: QueryDict) -> dict[str, Any]:
    """The arguments of `queries.conversations`.

    `state` overrides `archived`. Raises InvalidInput VALIDATION_FAILED for an unknown state,
    `validation_error` for other problems.
    """
    rest = query.copy()
    states = rest.pop("state", [])
    values = read(rest, CONVERSATIONS)
    chosen = "all" if values.pop("archived", False) else "active"
    if states:
        chosen = state(states[-1])
    if "agentName" in values:
        values["agent_name"] = values.pop("agentName")
    return {"state": chosen, **values}
