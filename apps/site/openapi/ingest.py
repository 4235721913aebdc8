"""Ingesting folders."""

from apps.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from apps.core.values.json_schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    TEXT,
    TIME,
    list_schema,
    object_schema,
    one_of,
    or_null,
)
from apps.index.types import RUNNING_STATES, TERMINAL_STATES
from apps.site.openapi.operation import Operation

STATE = one_of(*sorted({"queued", *RUNNING_STATES, *TERMINAL_STATES}))
COUNTS = object_schema(dict.fromkeys(("files", "chunks", "embedded", "skipped"), COUNT))
STARTED = object_schema({"runId": TEXT})
_RUN = {"runId": TEXT, "state": STATE, "counts": COUNTS}
_PROGRESS = {
    **dict.fromkeys(("message", "lastError", "errorCode", "currentFile"), TEXT),
    "fileIndex": COUNT,
    "fileTotal": COUNT,
    "percent": NUMBER,
    "etaMs": NUMBER,
    "leftOut": object_schema({"untracked": COUNT, "ignored": COUNT}),
}
RUN = object_schema(_RUN, _PROGRESS)
OPERATION = one_of("start", "reembed", "remove")
LIVE_RUN = object_schema({**_RUN, "name": TEXT, "path": TEXT, "operation": OPERATION}, _PROGRESS)
ROOT = object_schema(
    {
        "runId": TEXT,
        "name": TEXT,
        "description": or_null(TEXT),
        "path": TEXT,
        "model": TEXT,
        "status": STATE,
        "lastIngestAt": or_null(TIME),
        "counts": COUNTS,
        "lastError": or_null(TEXT),
        "damage": or_null(TEXT),
        "url": or_null(TEXT),
    }
)
MODEL = object_schema(
    {
        "id": TEXT,
        "displayName": TEXT,
        "contextLength": or_null(COUNT),
        "format": or_null(TEXT),
        "size": or_null(COUNT),
        "filename": or_null(TEXT),
    }
)
LOCKED = {"lockedModelId": or_null(TEXT)}

OUTSIDE = InvalidInput("The folder is outside the ingest base.", code="OUTSIDE_BASE")
NOT_DIRECTORY = InvalidInput("This is not a folder.", code="NOT_DIRECTORY")
NO_FOLDER = NotFound("There is no such folder.")
NO_RUN = NotFound("There is no such run.")
BUSY = Conflict("Another run or a backup is under way.", code="BUSY")
LOCKED_MODEL = Conflict(
    "Everything is embedded with another model.", code="MODEL_LOCKED", details={"lockedModelId": ""}
)
NO_EMBEDDER = Unavailable("The embedding server does not answer.", code="EMBEDDER_UNAVAILABLE")
NO_MODEL = Unavailable(
    "The embedding server does not have this model.",
    code="EMBED_MODEL_MISSING",
    details={"modelId": ""},
    retryable=False,
)

FIXED = Conflict("CODEINFO_INGEST_BASE is set.", code="BASES_FIXED")
TOKEN_ONLY = InvalidInput("Only the codeinfo command may do this.", code="SERVER_TOKEN_ONLY")
_BASES = {"bases": list_schema(TEXT), "added": list_schema(TEXT), "fixed": BOOLEAN}
BASES = object_schema(_BASES)
CHANGED_BASES = object_schema({"status": {"const": "ok"}, "path": TEXT, **_BASES})

OPERATIONS = {
    "POST /ingest/start": Operation(
        "Ingest a folder, or a repository that is fetched by its URL",
        {202: STARTED},
        (
            *(OUTSIDE, NOT_DIRECTORY, NO_FOLDER, LOCKED_MODEL, BUSY, NO_EMBEDDER, NO_MODEL),
            InvalidInput("The folder cannot be read.", code="NOT_READABLE"),
            InvalidInput("The folder holds codeinfo's own data.", code="OWN_DATA"),
            InvalidInput("Repositories are not fetched from this address.", code="URL_REFUSED"),
            Conflict("Another folder has this name.", code="NAME_TAKEN"),
        ),
    ),
    "POST /hooks/git/{key}": Operation(
        "A webhook: a push has a repository fetched again, if its signature is right",
        {
            200: object_schema({"status": {"const": "ok"}, "queued": BOOLEAN}),
            202: object_schema({"status": {"const": "ok"}, "queued": BOOLEAN}),
        },
        (InvalidInput("The signature or token is not right.", code="UNAUTHORIZED"),),
        headers=dict.fromkeys(("X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token"), TEXT),
        body={"type": "object", "properties": {"ref": TEXT}},
        body_required=False,
    ),
    "GET /ingest/status/{run_id}": Operation("The state of a run", {200: RUN}, (NO_RUN,)),
    "POST /ingest/cancel/{run_id}": Operation(
        "Cancel a run; answers when the worker has stopped, or after 15 s",
        {200: object_schema({"status": {"const": "ok"}, "cleanup": one_of("complete", "pending")})},
        (NO_RUN,),
    ),
    "POST /ingest/reembed/{path}": Operation(
        "Ingest a folder again; unchanged content stays as it is",
        {202: STARTED},
        (NO_FOLDER, OUTSIDE, NOT_DIRECTORY, LOCKED_MODEL, BUSY, NO_EMBEDDER, NO_MODEL),
        body_required=False,
    ),
    "POST /ingest/remove/{path}": Operation(
        "Remove a folder from the index",
        {200: object_schema({"status": {"const": "ok"}, "unlocked": BOOLEAN})},
        (NO_FOLDER, BUSY),
    ),
    "GET /ingest/runs": Operation(
        "The runs in progress and in the queue",
        {200: object_schema({"runs": list_schema(LIVE_RUN)})},
    ),
    "GET /ingest/roots": Operation(
        "All ingested folders, the latest ingest first",
        {200: object_schema({"roots": list_schema(ROOT), **LOCKED})},
    ),
    "POST /ingest/model": Operation(
        "Embed all folders again with another model",
        {202: object_schema({"runIds": list_schema(TEXT)})},
        (BUSY, NO_EMBEDDER, NO_MODEL),
    ),
    "GET /ingest/models": Operation(
        "The embedding models", {200: object_schema({"models": list_schema(MODEL), **LOCKED})}
    ),
    "GET /ingest/bases": Operation("The folders beneath which may be ingested", {200: BASES}),
    "POST /ingest/bases": Operation(
        "Allow a folder to be ingested; only with the token of server.json",
        {200: CHANGED_BASES},
        (
            *(NOT_DIRECTORY, NO_FOLDER, FIXED, TOKEN_ONLY),
            InvalidInput("The folder cannot be read.", code="NOT_READABLE"),
            InvalidInput("The folder holds codeinfo's own data.", code="OWN_DATA"),
            InvalidInput("The whole file system is too much.", code="TOO_WIDE"),
            Conflict("There are 100 added folders.", code="TOO_MANY_BASES"),
        ),
    ),
    "POST /ingest/bases/remove": Operation(
        "Take back a folder that was added; only with the token of server.json",
        {200: CHANGED_BASES},
        (NO_FOLDER, FIXED, TOKEN_ONLY),
    ),
    "GET /ingest/dirs": Operation(
        "The folders in a folder",
        {
            200: object_schema(
                {"base": TEXT, "path": TEXT, "dirs": list_schema(TEXT), "bases": list_schema(TEXT)}
            )
        },
        (OUTSIDE, NOT_DIRECTORY, NO_FOLDER),
        {"path": TEXT | {"description": "Blank: the first folder of CODEINFO_INGEST_BASE."}},
    ),
}
