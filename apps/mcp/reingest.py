"""`reingest_repository`: re-embed an ingested repository, and wait for the end of the run.

The Ingest page shows the run. A call that is cancelled or times out cancels the run, and the index
keeps its previous state (docs/mcp.md).
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from apps.core.concurrency.computed import in_thread
from apps.core.concurrency.hub import hub
from apps.core.concurrency.tasks import create_task
from apps.core.errors import Conflict
from apps.core.principal import require_staff
from apps.core.types import JSON
from apps.core.values.json_schema import (
    COUNT,
    TEXT,
    closed,
    object_schema,
    one_of,
    text_schema,
    typed,
)
from apps.index import changes, queries
from apps.index.models import IngestRun
from apps.index.types import TERMINAL_STATES
from apps.ingest import services
from apps.ingest.runs.progress import percent
from apps.ingest.serializers import status_wire
from apps.mcp.starting import begin
from apps.mcp.types import Annotations, Call, McpTool
from apps.retrieval.query import MAX_ID
from apps.retrieval.repositories import find_root

POLL_SECONDS = 2.0


async def run(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Re-ingest `repository`, and return `{runId, state, counts, lastError?}` at its end.

    Raises NotFound REPO_NOT_FOUND, which lists the known ids, Conflict BUSY or MODEL_LOCKED,
    InvalidInput FORBIDDEN for a user who is not staff, and what `folders.resolve` raises for a
    missing folder.
    """
    return outcome(await ingest_to_end(partial(_start, arguments["repository"].strip()), call))


async def ingest_to_end(start: Callable[[], IngestRun], call: Call) -> IngestRun:
    """Call `start` in a thread, and return its run at the end. A cancelled call cancels the run.

    Raises what `start` raises, with the active run in the message of BUSY, and InvalidInput
    FORBIDDEN for a user who is not staff.
    """
    require_staff()
    ingest = await begin(in_thread(_named_when_busy, start), _cancel)
    try:
        return await wait_for_end(ingest, call)
    except asyncio.CancelledError:
        # To its end, even if the caller is cancelled again.
        await asyncio.shield(create_task(_cancel(ingest)))
        raise


def outcome(run: IngestRun) -> JSON:
    """The end of a run as OUTPUT describes it."""
    wire = status_wire(run)
    return {name: wire[name] for name in OUTPUT["properties"] if name in wire}


def _start(repository: str) -> IngestRun:
    return services.reembed(find_root(repository).path)


def _named_when_busy(start: Callable[[], IngestRun]) -> IngestRun:
    try:
        return start()
    except Conflict as error:
        if error.code != "BUSY":
            raise
        raise Conflict(_busy(), code="BUSY") from error


def _busy() -> str:
    """The message of BUSY; names the active run if it has not ended yet."""
    run = queries.active_run()
    which = "Another ingest is" if run is None else f"The ingest of {run.name!r} is"
    return f"{which} queued or under way."


async def _cancel(ingest: IngestRun) -> None:
    # 0 seconds: do not wait for the worker to stop.
    await in_thread(services.cancel, ingest.id, 0.0)


async def wait_for_end(
    ingest: IngestRun, call: Call, is_enough: Callable[[], bool] = lambda: False
) -> IngestRun:
    """Wait for the end of the run, or until it `is_enough`, and report progress whenever its text
    changes."""
    reported = ""
    with hub.subscribe(changes.RUNS) as runs:
        while True:
            row = await in_thread(queries.find_run, ingest.id)
            if row.state in TERMINAL_STATES or await in_thread(is_enough):
                return row
            if (step := _progress_text(row)) != reported:
                await call.progress(step, row.file_index, row.file_total)
                reported = step
            await runs.next_within(POLL_SECONDS)


def _progress_text(run: IngestRun) -> str:
    """The message of the run with whole percents, so that not every file is reported."""
    message, done = run.message or run.state, percent(run)
    return message if done is None else f"{message}: {done:.0f} %"


INPUT = closed(
    object_schema(
        {"repository": text_schema(MAX_ID, "An `id` that ListIngestedRepositories returns.")}
    )
)
STATE = (
    "completed: the index is up to date. skipped: nothing had to be read again. cancelled: "
    "somebody stopped it. error: see lastError. needs_confirmation: most files have disappeared, "
    "and a person must confirm it on the Ingest page. After the last three the index answers as "
    "before."
)
COUNTS = {
    "type": "object",
    "description": "Files read (new or changed), chunks cut, embedded; files left out.",
} | object_schema(dict.fromkeys(("files", "chunks", "embedded"), COUNT), {"skipped": COUNT})
OUTPUT = closed(
    object_schema(
        {
            "runId": TEXT,
            "state": one_of(*sorted(TERMINAL_STATES)) | {"description": STATE},
            "counts": COUNTS,
        },
        {"lastError": typed("string", "Why it failed.")},
    )
)

REINGEST_REPOSITORY = McpTool(
    name="reingest_repository",
    title="Bring a repository up to date",
    need="files of a repository have changed since",
    description=(
        "Read the files of one ingested repository again and wait until that is done: seconds, "
        "or minutes for a large one. Use it after files have changed (you edited them, or a branch "
        "was switched), before searching for what changed. Searches meanwhile see the old state. "
        "One ingest runs at a time: BUSY means wait and call again. Closing the call cancels the "
        "run and leaves the old state."
    ),
    input_schema=INPUT,
    output_schema=OUTPUT,
    run=run,
    annotations=Annotations(read_only=False, destructive=False, idempotent=True),
    takes_long=True,
)
