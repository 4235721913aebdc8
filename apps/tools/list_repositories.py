"""ListIngestedRepositories: what can be searched."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, or_null, typed
from apps.index.types import Area
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.query import areas_of, repositories_of
from apps.retrieval.repositories import list_repositories, with_ids
from apps.tools.forms import named
from apps.tools.schemas import NEXT_CURSOR, NOTES, TRUNCATED
from apps.tools.tool import CURSOR, Tool, log_call, schema

_ID = typed("string", "Use it as `repository` of the other tools.")
_REPOSITORY = object_schema(
    {
        "id": _ID,
        "description": or_null(TEXT),
        "containerPath": TEXT,
        "hostPath": TEXT,
        "lastIngestAt": or_null(typed("string", "When its files were last read, in UTC.")),
        "modelId": TEXT,
        "counts": object_schema({"files": COUNT, "chunks": COUNT, "embedded": COUNT}),
        "lastError": or_null(typed("string", "Why the last ingest failed; null if it succeeded.")),
    },
    {
        "state": typed("string", "Set while it is being ingested; searches return the old files."),
        "hostPathWarning": TEXT,
    },
)
_REPOSITORIES: JSON = object_schema(
    {
        "repos": list_schema(_REPOSITORY),
        "lockedModelId": or_null(
            typed("string", "The embedding model; null if nothing is ingested.")
        ),
    },
    {"truncated": TRUNCATED, "nextCursor": NEXT_CURSOR, "hint": TEXT},
)
_MORE = ("description", "lastIngestAt", "lastError", "state", "containerPath", "modelId")
_COMPACT = object_schema(
    {
        "repos": list_schema(
            object_schema(
                {
                    "id": _ID,
                    "hostPath": TEXT,
                    "counts": object_schema({"files": COUNT, "chunks": COUNT}),
                },
                dict.fromkeys(_MORE, TEXT),
            )
        ),
    },
    {"lockedModelId": TEXT} | {key: NOTES[key] for key in ("truncated", "nextCursor", "hint")},
)


@dataclass(frozen=True)
class _Repositories:
    """Which repositories ListIngestedRepositories lists."""

    only: tuple[str, ...]  # empty: all
    cursor: Any


def _output(arguments: Mapping[str, Any]) -> JSON:
    # Models cannot choose: where only some may be seen, the toolset names them.
    only = with_ids(map(Area, arguments.get("repository") or ()))
    query = _Repositories(repositories_of(only), arguments.get("cursor"))
    payload = list_repositories(areas_of(arguments))
    repos = [repo for repo in payload["repos"] if not query.only or repo["id"] in query.only]
    pager = Pager.of("ListIngestedRepositories", query)
    shown, page = pager.page(repos, len(repos), itemgetter("id"), narrow="")
    log_call("ListIngestedRepositories", results=len(shown))
    return payload | {"repos": shown, PAGE: page}


def _compact(output: JSON) -> JSON:
    locked = output["lockedModelId"]
    rows = []
    for repo in output["repos"]:
        implied = {"containerPath": repo["hostPath"], "modelId": locked}
        counts = {"files": repo["counts"]["files"], "chunks": repo["counts"]["chunks"]}
        fields = {key: value for key, value in repo.items() if value not in (None, "")}
        rows.append(
            {key: value for key, value in fields.items() if value != implied.get(key)}
            | {"counts": counts}
        )
    return {"repos": rows} | named(output, "lockedModelId", "truncated", "nextCursor", "hint")


def _quoted(payload: JSON) -> JSON:
    fields = ("id", "description", "lastIngestAt", "counts", "lastError")
    repos = [{key: repo.get(key) for key in fields} for repo in payload.get("repos", [])]
    return {"repos": repos, **named(payload, "nextCursor", "hint")}


LIST_REPOSITORIES = Tool(
    name="ListIngestedRepositories",
    description=(
        "List the source repositories that can be searched, with `id` (what other tools take as "
        "`repository`), description, folder, last ingest and number of files. Use it to learn what "
        "there is, or which repository a question means."
    ),
    parameters=schema({"cursor": CURSOR}),
    function=_output,
    title="List the ingested repositories",
    need="which repositories there are, and how old their index is",
    output_schema=_REPOSITORIES,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_quoted,
    progress="Looking up which repositories there are",
)
