"""The query strings of the conversation routes, read strictly (docs/contract.md §1.2)."""

import re
from collections.abc import Callable
from typing import Any

from django.http import QueryDict

from apps.conversations.paging import Cursor
from apps.conversations.queries import STATES
from apps.conversations.serializers import refused
from apps.core.errors import InvalidInput
from apps.core.surrogates import is_storable

# 5.0 is a whole number to the contract's clients.
WHOLE = re.compile(r"-?\d{1,9}(\.0*)?")

Read = Callable[[str], Any]


def limited(most: int) -> Read:
    """A whole number, moved into 1..most."""

    def read(text: str) -> int:
        if not WHOLE.fullmatch(text):
            raise InvalidInput("must be a whole number")
        return max(1, min(most, int(float(text))))

    return read


def truth(text: str) -> bool:
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
    "limit": limited(100),
    "cursor": Cursor.parse,
    "archived": truth,
    "agentName": storable,
}
TURNS: dict[str, Read] = {"limit": limited(200), "cursor": Cursor.parse}


def read(query: QueryDict, known: dict[str, Read]) -> dict[str, Any]:
    """The values of a query. Raises InvalidInput `validation_error` with every problem by name."""
    values: dict[str, Any] = {}
    problems: dict[str, list[str]] = {}
    for name, texts in query.lists():
        try:
            values[name] = _one(known, name, texts)
        except InvalidInput as error:
            problems[name] = [error.message]
    if problems:
        raise refused(problems)
    return values


def _one(known: dict[str, Read], name: str, texts: list[str]) -> Any:
    if name not in known:
        raise InvalidInput("Unknown key.")
    if len(texts) != 1:
        raise InvalidInput("must be given once")
    return known[name](texts[0])


def conversations(query: QueryDict) -> dict[str, Any]:
    """The arguments of `queries.conversations`.

    `state` wins over `archived`; a bad state is VALIDATION_FAILED, anything else validation_error.
    """
    rest = query.copy()
    asked = rest.pop("state", [])
    values = read(rest, CONVERSATIONS)
    chosen = "all" if values.pop("archived", False) else "active"
    if asked:
        chosen = state(asked[-1])
    if "agentName" in values:
        values["agent_name"] = values.pop("agentName")
    return {"state": chosen, **values}
