"""`index_repository`: ingest a folder beneath CODEINFO_INGEST_BASE, and wait for the end.

Offered on `/mcp` only with CODEINFO_MCP_INGEST=true. Progress and cancellation are those of
`reingest_repository`.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, closed, object_schema, text_schema, typed
from apps.core.values.surrogates import storable
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import queries
from apps.index.models import IngestRun, Root
from apps.ingest import folders, refs, services
from apps.ingest.remote.address import RemoteAddress, is_remote
from apps.ingest.remote.clones import path_of
from apps.ingest.remote.network import is_named
from apps.mcp.reingest import OUTPUT as RUN
from apps.mcp.reingest import REINGEST_REPOSITORY, ingest_to_end, outcome
from apps.mcp.types import MAX_FOLDER, MAX_NAME, MAX_TEXT, Call


async def run(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Ingest `path`, and return `{runId, state, counts, lastError?, repository}` at the end.

    Raises what `services.start_run` raises: InvalidInput OUTSIDE_BASE, NOT_DIRECTORY, NOT_READABLE
    or OWN_DATA, NotFound for a missing folder, Conflict NAME_TAKEN, BUSY or MODEL_LOCKED; and
    InvalidInput FORBIDDEN for a user who is not staff.
    """
    ended = await ingest_to_end(partial(_start, arguments), call)
    return outcome(ended) | {"repository": ended.name}


def _start(arguments: Mapping[str, Any]) -> IngestRun:
    path = _path_here(arguments["path"])
    if remote := refs.address_of(path):
        return _start_remote(remote, arguments)
    folder = folders.resolve(path)
    # Of a folder that is ingested already, what the call does not name stays as it is.
    known = Root.objects.filter(path=str(folder)).first() or Root(name=folder.name or str(folder))
    return services.start_run(
        path=path,
        name=storable((arguments.get("name") or "").strip()) or known.name,
        model=queries.locked_model() or known.model or DEFAULT_MODEL,
        description=storable(arguments.get("description") or known.description),
        plain_folder=known.plain_folder,
    )


def _start_remote(remote: RemoteAddress, arguments: Mapping[str, Any]) -> IngestRun:
    # A ref of a folder is as near as the folder.
    is_ref = remote.scheme == "file" and not is_remote(arguments["path"])
    if not is_ref and not is_named(remote):
        raise InvalidInput(
            f"Clients may have no repositories of {remote.host or 'this machine'} fetched: "
            "CODEINFO_CLONE_HOSTS does not name it.",
            code="URL_REFUSED",
        )
    known = Root.objects.filter(path=path_of(remote)).first()
    return services.start_run(
        path=str(remote),
        name=storable((arguments.get("name") or "").strip()),
        model=queries.locked_model() or DEFAULT_MODEL,
        description=storable(arguments.get("description") or (known.description if known else "")),
    )


def _path_here(path: str) -> str:
    """The path in this process's file system of a path that may be the user's machine's."""
    *mapped, as_it_is = folders.candidates(path)
    return next((one for one in mapped if os.path.isdir(one) or refs.is_fetched(one)), as_it_is)


INPUT = closed(
    object_schema(
        {"path": text_schema(MAX_FOLDER, "Absolute path or URL of it, perhaps with @ref.")},
        {
            "name": text_schema(MAX_NAME, "Its `id`; by default the folder's name."),
            "description": TEXT | {"maxLength": MAX_TEXT},
        },
    )
)
OUTPUT: JSON = RUN | {
    "properties": RUN["properties"]
    | {"repository": typed("string", "The `id` for the other tools.")},
    "required": [*RUN["required"], "repository"],
}

INDEX_REPOSITORY = replace(
    REINGEST_REPOSITORY,
    name="index_repository",
    title="Add a repository",
    need="a folder is not ingested yet; offered if the server allows it",
    description=(
        "Ingest a folder of the server's machine so that it can be searched, and wait until that "
        "is done: seconds to minutes. Only folders beneath the server's ingest base are taken, and "
        "URLs of hosts that it names. Use "
        "it when the user wants a repository that ListIngestedRepositories does not list. BUSY "
        "means wait and call again. Closing the call cancels the run."
    ),
    input_schema=INPUT,
    output_schema=OUTPUT,
    run=run,
)
