"""How long the last runs took, and how they ended."""

from apps.core.drawing import Chart, chart
from apps.index.models import IngestRun

RUNS = 40


def runs_chart() -> Chart | None:
    """The last runs that have ended, oldest first; None for fewer than two."""
    ended = IngestRun.objects.filter(started_at__isnull=False, finished_at__isnull=False)
    runs = list(ended.exclude(operation=IngestRun.Operation.REMOVE).order_by("-finished_at")[:RUNS])
    if len(runs) < 2:
        return None
    failed = sum(run.state == "error" for run in runs)
    return chart(
        f"Seconds of the last {len(runs)} runs, {failed or 'none'} of them failed",
        [_column(run) for run in reversed(runs)],
    )


def _column(run: IngestRun) -> tuple[str, list[tuple[str, float]]]:
    took = run.finished_at - run.started_at if run.finished_at and run.started_at else None
    seconds = max(0.01, took.total_seconds()) if took else 0.0
    kind = run.state if run.state in ("completed", "error") else "other"
    return f"{run.name}: {run.state}, {seconds:,.1f} s", [(kind, seconds)]
