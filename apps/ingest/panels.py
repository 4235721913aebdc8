"""The live partials of the ingest page. Page, htmx response and websocket render the same ones.

A view is a list of partials. Each is one element with an id and `hx-swap-oob`, so that htmx puts it
in its place from any response.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from django.db.models.functions import Coalesce
from django.template.loader import render_to_string
from django.utils import timezone

from apps.core.config import config
from apps.core.drawing.sizes import Chart, chart
from apps.core.system import disk
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import endings, queries
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.types import TERMINAL_STATES
from apps.index.vectors.following import Following, following, of_stores
from apps.ingest import folders, skips
from apps.ingest.discovery import refusal
from apps.ingest.discovery.own_data import is_clone
from apps.ingest.runs import orphans
from apps.ingest.runs.progress import percent
from apps.ingest.types import LeftOut

# Runs in the chart.
RUNS = 40

VIEWS: dict[str, tuple[str, ...]] = {
    "page": (
        "_run",
        "_roots",
        "_count",
        "_start",
        "_bulk",
        "_lock",
        "_unready",
        "_unknown",
        "_disk",
        "_foot_run",
    ),
    "foot": ("_foot_run",),
    "logs": ("_foot_run",),
    "search": ("_foot_run", "_generations"),
    "chat": ("_foot_run", "_chat_run", "_chat_said"),
}


PhaseState = Literal["done", "current", "waiting"]
# State of a run → those of its phases.
PHASE_STATES: dict[str, tuple[PhaseState, ...]] = {
    "queued": ("waiting", "waiting", "waiting"),
    "scanning": ("current", "waiting", "waiting"),
    "embedding": ("done", "current", "waiting"),
}


@dataclass(frozen=True)
class Phase:
    """One step of a run."""

    name: str
    text: str  # its result, or what it does
    state: PhaseState


@dataclass(frozen=True)
class RunPanel:
    """A run as the page shows it."""

    run: IngestRun

    @property
    def active(self) -> bool:
        return self.run.state not in TERMINAL_STATES

    @property
    def percent(self) -> float | None:
        return percent(self.run)

    @property
    def left_out(self) -> LeftOut:
        return skips.left_out_of(self.run)

    @property
    def seconds(self) -> float | None:
        """How long it has taken until now, or until its end."""
        end = self.run.finished_at or timezone.now()
        return (end - self.run.started_at).total_seconds() if self.run.started_at else None

    @cached_property
    def problems(self) -> int:
        """The number of files of its root with a problem, if it published last."""
        if self.active:
            return 0
        live = SourceFile.objects.filter(root__last_run_id=self.run.id).live()
        return live.with_problem().count()

    @property
    def cancelling(self) -> bool:
        """Whether it was cancelled, and has not ended yet."""
        return self.active and self.run.cancel_requested

    @property
    def may_be_plain(self) -> bool:
        """Whether it failed because of its git repository, and can be repeated without git. What
        git fetches, or takes from a repository, has no folder without it."""
        return self.run.error_code == refusal.CODE and not is_clone(Path(self.run.path))

    @property
    def reason(self) -> str:
        """Why it failed, in sentences. `last_error` often begins with the message."""
        message, error = self.run.message, self.run.last_error
        if message != endings.FAILED and not error.startswith(message):
            error = f"{message}. {error}"
        return error if error.endswith((".", "!", "?")) else f"{error}."

    @property
    def announcement(self) -> str:
        """Text of an ARIA live region. It changes with the state and at every 10 percent."""
        if self.cancelling or self.run.state != "embedding" or self.percent is None:
            return f"{self.run.name}: {self.run.message or self.run.state}"
        return f"{self.run.name}: {int(self.percent // 10) * 10} percent"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Its steps; none after it has ended."""
        texts = _found_text(self.run), _embedding_text(self.run), _publish_text(self.run)
        names = "Discovery", "Embedding", "Publish"
        return tuple(map(Phase, names, texts, PHASE_STATES.get(self.run.state, ())))


@dataclass(frozen=True)
class RootRow:
    """A root in the table."""

    root: Root
    run: IngestRun | None  # its live run
    chroma: Following  # how far Chroma has followed it

    @property
    def state(self) -> str:
        if self.run:
            return self.run.state
        return "damaged" if self.root.damage else self.root.last_state or "completed"


def context() -> dict[str, Any]:
    """Return the template context of the partials."""
    active = queries.active_run()
    shown = active or _latest_run()
    lock = queries.index_lock()
    rows = _rows()
    return {
        "active": RunPanel(active) if active else None,
        "panel": RunPanel(shown) if shown else None,
        "rows": rows,
        "unready": sum(lock is None or row.root.model != lock.model for row in rows),
        "waiting": len(queries.queued_runs()),
        "locked_model": lock.model if lock else None,
        "default_model": DEFAULT_MODEL,
        "shortage": disk.shortage(),
        "generations": generations([row.root for row in rows]),
        "unknown": orphans.unknown_folders(),
        # Callables: only the chat shows the first, and the second waits for the end of a run.
        "chosen": chosen_panel,
        "runs": runs_chart,
    }


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


def generations(roots: Iterable[Root]) -> str:
    """Return root → generation as JSON. A page that shows other ones is out of date."""
    return json.dumps({root.id.hex: root.generation for root in roots})


def chosen_panel() -> RunPanel | None:
    """Return the latest run of a folder that somebody has chosen: not of the first root."""
    runs = IngestRun.objects.exclude(operation=IngestRun.Operation.REMOVE)
    run = runs.exclude(path=folders.first_root(config())).order_by("-queued_at").first()
    return RunPanel(endings.with_unsaved_ending(run)) if run else None


def render(view: str) -> dict[str, str]:
    """Return partial name → HTML, for all partials of a view."""
    values = context()
    return {name: render_to_string(f"ingest/{name}.html", values) for name in VIEWS[view]}


def _latest_run() -> IngestRun | None:
    runs = IngestRun.objects.exclude(operation=IngestRun.Operation.REMOVE)
    latest = runs.order_by(Coalesce("finished_at", "queued_at").desc(), "-queued_at").first()
    return endings.with_unsaved_ending(latest) if latest else None


def _rows() -> list[RootRow]:
    live = {run.path: run for run in endings.live()}
    roots = queries.published_roots()
    return [
        RootRow(root, live.get(root.path), chroma)
        for root, chroma in zip(roots, followed(roots), strict=True)
    ]


def followed(roots: Sequence[Root]) -> list[Following]:
    """Return how far Chroma has followed each root. State and reason are those of the whole."""
    whole = following()
    reached = {} if whole.state == "off" else of_stores()
    pairs = [reached.get(root.store, (0, 0)) for root in roots]
    return [whole._replace(vectors=vectors, total=total) for vectors, total in pairs]


def _found_text(run: IngestRun) -> str:
    if run.state != "embedding":
        return "Finds files"
    files = (run.file_total or 0) + run.unchanged + run.skipped
    text = f"{files:,} found, {run.skipped:,} skipped"
    return f"{text}, {run.unchanged:,} unchanged" if run.unchanged else text


def _embedding_text(run: IngestRun) -> str:
    if run.state != "embedding":
        return "Splits files into passages and computes a vector for each"
    done = f"{run.embedded:,} of {run.chunks:,} passages"
    return f"{done} would be embedded" if run.dry_run else f"{done} have a vector"


def _publish_text(run: IngestRun) -> str:
    return "Nothing is published in a dry run" if run.dry_run else "Makes all files searchable"
