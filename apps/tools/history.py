"""History: the log, blame and diffs of commits."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import BOOLEAN, TEXT, list_schema, object_schema, typed
from apps.lookup.git.refs import MAX_NAME as MAX_REF
from apps.lookup.history import HistoryQuery, history
from apps.lookup.history.query import KINDS, MAX_LIMIT
from apps.lookup.symbols.types import MAX_NAME
from apps.lookup.texts.reading import MAX_RANGES_TEXT
from apps.retrieval.query import MAX_PATH
from apps.tools import forms, schemas
from apps.tools.errors import NO_FILE, OF_HISTORY, OF_PAGES, OF_SYMBOLS, TEXT_LOST
from apps.tools.tool import CURSOR, QUOTED, REPOSITORY_ID, Tool, limit, log_call, schema, text

SHORT = 10  # characters of an id that a model sees
_REF = text(MAX_REF)
_ID = typed("string", "Id of a commit.")
_COMMIT: JSON = {"commit": _ID, "date": TEXT, "author": TEXT, "message": schemas.QUOTE}
_BOUNDARY: JSON = {"boundary": BOOLEAN}
_ROW = object_schema(
    {"repo": TEXT, "kind": typed("string", "commit, lines, uncommitted, or what a file became.")},
    {
        **schemas.PLACE,
        **schemas.MORE_PLACE,
        **_COMMIT,
        **_BOUNDARY,
        "oldPath": TEXT,
        **schemas.SPAN,
        "chunk": schemas.QUOTE,
    },
)
_NOTES: JSON = {"notes": TEXT, **schemas.NOTES}
_HISTORY = object_schema(
    {"repo": TEXT, "of": TEXT, "to": _ID, "results": list_schema(_ROW)},
    {"from": _ID, "commit": object_schema(_COMMIT, _BOUNDARY), **_NOTES},
)
_COMPACT = object_schema(
    {
        "repo": TEXT,
        "of": TEXT,
        "to": _ID,
        "results": list_schema(TEXT)
        | {"description": "Commits: id, date, author: message. Below `@commit` its lines."},
    },
    {"from": _ID, "commit": TEXT, **_NOTES},
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = HistoryQuery.parse(arguments)
    output = history(query)
    log_call("History", **query.as_log(), results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """A text for each commit of a log; the lines of blame below their commit, and those of a diff
    below their file."""
    rows = {"log": _log, "blame": _blame, "diff": _diff}[output["of"]](output["results"])
    commit = {"commit": _text(output["commit"])} if "commit" in output else {}
    ends: JSON = {name: output[name][:SHORT] for name in ("from", "to") if name in output}
    head = forms.named(output, "repo", "of")
    return {**head, **ends, **commit, "results": rows, **forms.named(output, *_NOTES)}


def _log(rows: list[JSON]) -> list[str]:
    return [_text(row | {"message": row["message"].partition("\n")[0]}) for row in rows]


def _blame(rows: list[JSON]) -> list[str]:
    texts, seen = [], set[str]()
    for row in rows:
        commit = row.get("commit", "")
        head = "not committed" if not commit else commit[:SHORT] if commit in seen else _text(row)
        seen.add(commit)
        texts += [f"@{head}", *forms.numbered(row)]
    return texts


def _diff(rows: list[JSON]) -> list[str]:
    texts: list[str] = []
    before = ""
    for row in rows:
        old = f" from {row['oldPath']}" if "oldPath" in row else ""
        head = f"{row['kind']} {row['relPath']}{old}"
        texts += [] if head == before else [head]
        texts += row["chunk"].split("\n") if row["chunk"] else []
        before = head
    return texts


def _text(row: JSON) -> str:
    """`1a2b3c4d5e 2026-11-28 Jane Doe: Subject`, or `… Jane Doe (old/path.py): Subject`."""
    boundary = " (boundary)" if row.get("boundary") else ""
    old = f" ({row['oldPath']})" if "oldPath" in row else ""
    head = f"{row['commit'][:SHORT]}{boundary} {row['date'][:10]} {row['author']}{old}"
    return f"{head}: {row['message']}"


HISTORY = Tool(
    name="History",
    description=(
        "Commits of a repository, path, symbol or lines: who changed what, when and why. `log` "
        "lists them, `blame` tells the commit of each line, `diff` compares two; with `to` alone "
        "it shows what that commit changed, with neither what changed since the ingest. " + QUOTED
    ),
    parameters=schema(
        {
            "of": {"type": "string", "enum": list(KINDS)},
            "repository": REPOSITORY_ID,
            "path": text(MAX_PATH, "File or folder."),
            "symbol": text(MAX_NAME),
            "lines": text(MAX_RANGES_TEXT, "'10-40'"),
            "from": _REF | {"description": "Branch, tag, id, 'HEAD~3' or 'ingest'."},
            "to": _REF,
            "limit": limit(None, MAX_LIMIT),
            "cursor": CURSOR,
        },
        "repository",
    ),
    function=_output,
    title="Look into the history",
    need="who changed code, when and why; what changed between commits",
    output_schema=_HISTORY,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_compact,  # its commits and lines are what a chat cites
    route="history",
    errors=(*OF_SYMBOLS, *OF_PAGES, NO_FILE, TEXT_LOST, *OF_HISTORY),
    progress="Looking into the history of",
    subject="repository",
    empty_hint="No commit is found there. Leave out `from`, or name a folder above the path.",
    result_words=("commit", "commits"),
)
