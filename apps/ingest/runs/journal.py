"""Log events of runs (docs/contract.md §5.7), and their metrics."""

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from apps.core.monitoring.metrics import CHUNKS, INGEST_RUNS
from apps.index.endings import UNCHANGED
from apps.index.models import IngestRun
from apps.ingest.types import counts_of
from apps.logs.context import log_context

logger = logging.getLogger("codeinfo.ingest")

# Called as `count`, too. A worker tells its server, which answers /metrics.
also: Callable[[str, str, int], object] | None = None


def run_started(run: IngestRun) -> None:
    """Log the start of a run. Of automatic ones, only what they did is logged."""
    if not run.automatic:
        _log(run, "start")


def run_ended(run: IngestRun) -> None:
    """Log the end of a run, and count it in the metrics."""
    chunks = 0 if run.dry_run else run.embedded
    count(run.operation, run.state, chunks)
    if also:
        also(run.operation, run.state, chunks)
    if not run.automatic or run.message != UNCHANGED.message:
        _log(run, run.state)


def count(operation: str, state: str, chunks: int) -> None:
    """Count the end of a run in the metrics of this process."""
    INGEST_RUNS.labels(operation, state).inc()
    CHUNKS.inc(chunks)


def run_progressed(run_id: UUID, file_index: int | None, counts: Mapping[str, int]) -> None:
    """Log the progress of a run."""
    facts = {"runId": str(run_id), "fileIndex": file_index, "counts": dict(counts)}
    logger.info("ingest progress", extra={"context": facts})


def _log(run: IngestRun, event: str) -> None:
    verb = "ingest remove" if run.operation == IngestRun.Operation.REMOVE else "ingest"
    failed = run.state in ("error", "needs_confirmation")
    level = logging.WARNING if failed else logging.INFO
    with log_context(run.request_id):
        logger.log(level, "%s %s", verb, event, extra={"context": _facts(run)})


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
        "automatic": run.automatic,
        "counts": counts_of(run),
        "lastError": run.last_error or None,
    }
