"""The log of what runs began and how they ended (docs/contract.md §5.7)."""

import logging
from collections.abc import Mapping
from uuid import UUID

from apps.core.metrics import CHUNKS, INGEST_RUNS
from apps.index.models import IngestRun
from apps.logs.context import log_context

logger = logging.getLogger("codeinfo.ingest")


def began(run: IngestRun) -> None:
    _log(run, "start")


def ended(run: IngestRun) -> None:
    INGEST_RUNS.labels(run.operation, run.state).inc()
    CHUNKS.inc(0 if run.dry_run else run.embedded)
    _log(run, run.state)


def goes_on(run_id: UUID, file_index: int | None, counts: Mapping[str, int]) -> None:
    facts = {"runId": str(run_id), "fileIndex": file_index, "counts": dict(counts)}
    logger.info("ingest progress", extra={"context": facts})


def _log(run: IngestRun, what: str) -> None:
    verb = "ingest remove" if run.operation == IngestRun.Operation.REMOVE else "ingest"
    failed = run.state in ("error", "needs_confirmation")
    level = logging.WARNING if failed else logging.INFO
    with log_context(run.request_id):
        logger.log(level, "%s %s", verb, what, extra={"context": _facts(run)})


def _facts(run: IngestRun) -> dict[str, object]:
    return {
        "runId": str(run.id),
        "operation": run.operation,
        "path": run.path,
        "root": str(run.root_id) if run.root_id else None,
        "name": run.name,
        "description": run.description,
        "model": run.model,
        "state": run.state,
        "counts": {
            "files": run.files,
            "chunks": run.chunks,
            "embedded": run.embedded,
            "skipped": run.skipped,
        },
        "lastError": run.last_error or None,
    }
