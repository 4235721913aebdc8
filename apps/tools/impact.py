"""Impact: what a change affects."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.git.refs import MAX_NAME as MAX_REF
from apps.lookup.impact import ImpactQuery, impact
from apps.lookup.impact.query import MAX_DEPTH, MAX_LIMIT, MAX_PATCH
from apps.tools import forms, schemas
from apps.tools.errors import OF_HISTORY, OF_PAGES, OF_SYMBOLS, TEXT_LOST
from apps.tools.tool import CURSOR, QUOTED, REPOSITORY_ID, Tool, limit, log_call, schema, text

KIND = typed("string", "changed, caller, test, importer, or together: changed in one commit.")
_CERTAINTY = typed("string", "proven: by scopes, imports or types; possible: by name.")
_STEP = object_schema({"symbol": TEXT, "relPath": TEXT}, {"line": COUNT, "certainty": _CERTAINTY})
_ROW = object_schema(
    {
        **schemas.PLACE,
        "kind": KIND,
        "certainty": _CERTAINTY,
        **schemas.SPAN,
        "chunk": schemas.ONE_LINE,
    },
    {
        **schemas.MORE_PLACE,
        "symbol": typed("string", "The definition that changed, or has the line; none: the file."),
        "change": typed("string", "body, signature, added, removed, renamed or file."),
        "oldPath": TEXT,
        "oldSymbol": TEXT,
        "of": typed("string", "The changed definition or file."),
        "depth": typed("integer", "1: uses it; 2: uses a user; …"),
        "way": list_schema(_STEP) | {"description": "From the row to the changed definition."},
        "commits": typed("integer", "How many commits changed both files."),
    },
)
_HEAD: JSON = {"base": typed("string", "Id of the commit before the change.")}
_IMPACT = schemas.results(_ROW, {"repo": TEXT}, _HEAD | {"notes": TEXT} | schemas.NOTES)
_COMPACT = object_schema(
    {"repo": TEXT, "results": list_schema(TEXT) | {"description": "Lines below their `# kind`."}},
    _HEAD | {"notes": TEXT} | schemas.NOTES,
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = ImpactQuery.parse(arguments)
    output = impact(query)
    log_call("Impact", **query.as_log(), results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """A text for each row, below its kind; possible ones begin with `~`."""
    texts: list[str] = []
    before = ""
    for row in output["results"]:
        texts += [] if row["kind"] == before else [f"# {row['kind']}"]
        before = row["kind"]
        texts.append(_text(row))
    return {**forms.named(output, "repo", "base"), "results": texts} | forms.named(
        output, "notes", *schemas.NOTES
    )


def _text(row: JSON) -> str:
    """`body src/app.py:12-20 Client.get`, or `tests/test_app.py:7 test_get -> Client.get`."""
    lines = "" if row["startLine"] is None else f":{forms.span(row)}"
    place = f"{row['relPath']}{lines}"
    if row["kind"] == "changed":
        old = [row[name] for name in ("oldPath", "oldSymbol") if name in row]
        was = f" from {' '.join(old)}" if old else ""
        return f"{row['change']} {place} {row.get('symbol', '')}".rstrip() + was
    mark = "~" if row["certainty"] == "possible" and row["kind"] != "together" else ""
    times = f" {row['commits']} times" if "commits" in row else ""
    return f"{mark}{place}{times} {way_text(row)}"


def way_text(row: JSON) -> str:
    """`test_get -> Client.get ~> Client.send`: `~>` is a possible use."""
    if "way" not in row:
        return f"-> {row['of']}"
    steps = row["way"]
    arrows = [" ~> " if step.get("certainty") == "possible" else " -> " for step in steps[:-1]]
    names = [step["symbol"] or step["relPath"] for step in steps]
    return "".join(f"{name}{arrow}" for name, arrow in zip(names, [*arrows, ""], strict=True))


def _quoted(output: JSON) -> JSON:
    rows = [
        forms.cited(
            row,
            forms.named(row, "kind", "change", "certainty", "symbol", "oldPath", "commits")
            | ({} if row["kind"] == "changed" else {"way": way_text(row)}),
        )
        for row in output["results"]
    ]
    head = forms.named(output, "repo", "base", "notes", *schemas.NOTES)
    return head | {"results": rows}


IMPACT = Tool(
    name="Impact",
    description=(
        "What a change affects: the definitions that changed, their callers, the tests that reach "
        "them with the way of calls, importers, and files that used to change with them. By "
        "default the work tree against HEAD. " + QUOTED
    ),
    parameters=schema(
        {
            "repository": REPOSITORY_ID,
            "base": text(MAX_REF, "Branch, tag, id or 'ingest'."),
            "patch": text(MAX_PATCH, "Unified diff, instead of the work tree."),
            "depth": limit(None, MAX_DEPTH),
            "limit": limit(None, MAX_LIMIT),
            "cursor": CURSOR,
        },
        "repository",
    ),
    function=_output,
    title="Find what a change affects",
    need="what a diff breaks, which tests to run for it",
    output_schema=_IMPACT,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_quoted,
    route="impact",
    errors=(*OF_SYMBOLS, *OF_PAGES, TEXT_LOST, *OF_HISTORY),
    progress="Following the changes of",
    subject="repository",
    empty_hint="Nothing has changed. Name an earlier `base`, or send a `patch`.",
    result_words=("row", "rows"),
)
