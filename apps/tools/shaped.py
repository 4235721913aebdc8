"""The answer to a question by its shape, a field of the outputs of VectorSearch and Context."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, list_schema, object_schema, typed
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.relations.types import SECONDS, Scope
from apps.lookup.shaped import ShapedAnswer, answer_by_shape
from apps.tools import schemas
from apps.tools.forms import named, place
from apps.tools.tool import ANSWER

log = logging.getLogger("codeinfo.tools")

# The rows have at most this share of CODEINFO_TOOL_MAX_CHARS.
SHARE = 0.4

ROW = object_schema(
    {
        **schemas.PLACE,
        "kind": typed("string", "definition, caller, reference, test, implementation, step, …"),
        "certainty": typed("string", "proven: by scopes, imports or types; possible: by name."),
        **schemas.SPAN,
        "chunk": schemas.QUOTE,
    },
    {
        **schemas.MORE_PLACE,
        "symbol": typed("string", "The definition that has the lines, or that they are."),
        "of": typed("string", "What they call, test, extend, serve or start."),
    },
)
_ABOUT: JSON = {
    "shape": typed("string", "callers, uses, tests, configuration, definition, path, …"),
    "subject": typed("string", "What the question is about."),
}
_FACTS: JSON = {
    "languages": list_schema(TEXT) | {"description": "Of a repository: files, lines, share."},
    "modules": list_schema(TEXT) | {"description": "Of a repository: files, largest parts."},
}
_NOTES: JSON = _FACTS | {
    "notes": list_schema(TEXT) | {"description": "What was not found or looked at."}
}
SCHEMA: JSON = {ANSWER: object_schema({**_ABOUT, "rows": list_schema(ROW)}, _NOTES)}
COMPACT_SCHEMA: JSON = {
    ANSWER: object_schema(
        {
            **_ABOUT,
            "rows": list_schema(TEXT)
            | {"description": "kind repo/path:12 symbol -> of | line: quoted data."},
        },
        _NOTES,
    )
}


def shaped_answer(
    text: str, repositories: tuple[str, ...], filters: Filters
) -> tuple[JSON, ShapedAnswer | None]:
    """The field ANSWER, if a question has a shape, and the answer itself. A look-up that fails
    leaves it out: passages answer."""
    try:
        answer = answer_by_shape(text, Scope(repositories, filters), Deadline(SECONDS))
    except CodeinfoError as error:
        log.info("no answer by shape", extra={"context": {"code": error.code}})
        return {}, None
    return ({ANSWER: _fitting(answer.as_wire())}, answer) if answer else ({}, None)


def _fitting(wire: JSON) -> JSON:
    """The answer with as many rows as have room."""
    room = config().tool_max_chars * SHARE
    return within(wire, room, lambda row: len(json.dumps(row, ensure_ascii=False)))


def within(answer: JSON, room: float, cost: Callable[[Any], int]) -> JSON:
    """The answer with as many languages, modules and rows as have room, in this order."""
    lists: dict[str, list[Any]] = {name: [] for name in (*_FACTS, "rows") if name in answer}
    for name, fitting in lists.items():
        for one in answer[name]:
            room -= cost(one)
            if room < 0:
                return answer | lists
            fitting.append(one)
    return answer | lists


def lines_of(output: Mapping[str, Any]) -> set[tuple[str, str, int]]:
    """The lines that the rows of an answer have: repository, path, line."""
    return {
        (row["repo"], row["relPath"], line)
        for row in output.get(ANSWER, {}).get("rows", ())
        for line in range(row["startLine"], row["endLine"] + 1)
    }


def without_repeats(output: Mapping[str, Any]) -> list[JSON]:
    """The passages of an output but those whose lines are all in rows of its answer: a model reads
    no line twice."""
    shown = lines_of(output)
    return [row for row in output.get("results", ()) if not shown or not _is_in(row, shown)]


def _is_in(row: Mapping[str, Any], shown: set[tuple[str, str, int]]) -> bool:
    if row["startLine"] is None:
        return False
    lines = range(row["startLine"], row["endLine"] + 1)
    return all((row["repo"], row["relPath"], line) in shown for line in lines)


# --- compact and quoted ---------------------------------------------------------------------------


def compact(output: Mapping[str, Any]) -> JSON:
    """The field ANSWER with a text for each row: `caller repo/path:12 symbol -> of | line`."""
    answer = output.get(ANSWER)
    if not answer:
        return {}
    rows = [line_of(row) for row in answer["rows"]]
    about = named(answer, "shape", "subject")
    facts = named(answer, *_FACTS)
    return {ANSWER: {**about, **facts, "rows": rows, **named(answer, "notes")}}


def line_of(row: Mapping[str, Any]) -> str:
    """A row as one text."""
    lines = place(row["repo"], row["relPath"], row["startLine"], row["endLine"])
    kind = row["kind"] if row["certainty"] == "proven" else f"possible {row['kind']}"
    of = f" -> {row['of']}" if row.get("of") else ""
    symbol = f" {row['symbol']}" if row.get("symbol") else ""
    return f"{kind} {lines}{symbol}{of} | {row['chunk']}"
