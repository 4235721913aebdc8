"""Read-only queries: published roots, live files, and the state of runs."""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote
from uuid import UUID

from django.db.models import Q

from apps.core.errors import NotFound
from apps.index import endings
from apps.index.models import Clone, IndexLock, IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.query_cache import CachedQuery, per_generation

_FILE = "file://"
# URL@REF. Before an `@` that begins a segment of a path stands no ref (`ingest.remote.address`).
_WITH_REF = re.compile(r"((?:[a-z]+://[^/]*/|[^/@]+@[^:@]+:).*[^/])@[^@]+")
# Latest first; the run decides between equal times.
_published = CachedQuery(
    lambda: Root.objects.published().order_by("-last_ingest_at", "-last_run_id")
)
_clones = CachedQuery(lambda: Clone.objects.only("path", "url"))
_locked = CachedQuery(lambda: IndexLock.objects.only("model", "dimension"))


def published_roots() -> list[Root]:
    """Return the published roots, latest ingest first. The objects are shared between callers:
    do not change them."""
    return list(_published.rows())


def damages() -> dict[str, str]:
    """Return root name → `Root.damage`, for damaged published roots."""
    damaged = Root.objects.published().exclude(damage="").order_by("name")
    return dict(damaged.values_list("name", "damage"))


def other_roots(root: Root) -> list[Root]:
    """Return the other roots with the same store: they have many of its files."""
    return list(Root.objects.filter(store=root.store).exclude(id=root.id).order_by())


def find_root(path: str) -> Root:
    """Return the published root with exactly this path. Raises NotFound."""
    root = Root.objects.published().filter(path=path).first()
    if root is None:
        raise NotFound(f"No ingested folder {path}.")
    return root


def repositories_of_clones() -> dict[str, str]:
    """Return the repository of each clone, by its folder: the URL without a ref, or the folder of a
    repository of this machine."""
    return {clone.path: _without_ref(clone.url) for clone in _clones.rows()}


def _without_ref(url: str) -> str:
    found = _WITH_REF.fullmatch(url)
    repository = found[1] if found else url
    is_file = repository.startswith(_FILE)
    return unquote(repository.removeprefix(_FILE)) if is_file else repository


def index_lock() -> IndexLock | None:
    """Return the embedder that all roots share; None while the index is empty."""
    return IndexLock.objects.first()


def locked_model() -> str | None:
    """Return the id of the model of `index_lock`. Cached, as every search reads it."""
    return next((lock.model for lock in _locked.rows()), None)


def locked_dimension() -> int | None:
    """Return the number of dimensions of all vectors; None while the index is empty. Cached."""
    return next((lock.dimension for lock in _locked.rows()), None)


def find_run(run_id: str | UUID) -> IngestRun:
    """Return a run. Raises NotFound, also if `run_id` is not a UUID."""
    try:
        return endings.with_unsaved_ending(IngestRun.objects.get(id=UUID(str(run_id))))
    except (ValueError, IngestRun.DoesNotExist):
        raise NotFound(f"No ingest run {run_id}.") from None


def active_run() -> IngestRun | None:
    """Return the run in progress, else the next one in the queue, of those that somebody has
    started."""
    runs = endings.live().requested()
    return runs.running().first() or runs.order_by("queued_at").first()


def names_being_ingested() -> list[str]:
    """Return the names of the folders whose ingest is in progress, or queued, next one first."""
    removal = IngestRun.Operation.REMOVE
    runs = [run for run in live_runs() if not run.dry_run and run.operation != removal]
    return [run.name or PurePosixPath(run.path).name for run in runs]


def live_runs() -> list[IngestRun]:
    """Return the runs in progress, then the queued ones, next one first, of those that somebody has
    started."""
    runs = endings.live().requested()
    return [
        *runs.running().order_by("started_at"),
        *runs.filter(state="queued").order_by("queued_at"),
    ]


def queued_runs() -> list[IngestRun]:
    """Return the queued runs, next one first, of those that somebody has started."""
    return list(IngestRun.objects.requested().filter(state="queued").order_by("queued_at"))


def live_states() -> dict[str, str]:
    """Return folder path → "queued", "scanning" or "embedding", for live runs that somebody has
    started. Dry runs are left out."""
    runs = endings.live().requested().filter(dry_run=False)
    return dict(runs.values_list("path", "state"))


def live_files(root: Root) -> SourceFileQuerySet:
    """Return the live files of a root by path, skipped files included."""
    return SourceFile.objects.filter(root=root).live().order_by("path")


def generation_files(root: Root) -> SourceFileQuerySet:
    """Return the files that are live at the generation of the object `root`, even if a later one is
    published by now. A search caches what it reads by this generation."""
    return SourceFile.objects.filter(root_id=root.id).live_at(root.generation)


@per_generation
def live_file_ids(root: Root) -> frozenset[str]:
    """Return the ids under which the stores have `generation_files` (`SourceFile.document`), as
    strings."""
    ids = generation_files(root).values_list("document", flat=True)
    return frozenset(str(file_id) for file_id in ids.iterator())


def unconfirmed_run(root: Root) -> IngestRun | None:
    """Return the latest run if it waits for a confirmation that files have disappeared."""
    if root.last_state != "needs_confirmation":
        return None
    runs = IngestRun.objects.filter(path=root.path, state="needs_confirmation")
    return runs.order_by("-queued_at").first()


def listed_by(run: IngestRun) -> SourceFileQuerySet:
    """Return the files that a run skipped, a dry run too, and the ingested ones with a problem. For
    the run that published last, these include files that are unchanged since earlier runs."""
    latest = SourceFile.objects.live().filter(root__last_run_id=run.id)
    # Without those of a root that was removed: the run names none then.
    own = SourceFile.objects.filter(Q(root=run.root_id) | Q(root__isnull=True), run=run)
    return (own | latest).order_by("path").listed()
