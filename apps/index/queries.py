"""What the index holds and does now. Reads only."""

from uuid import UUID

from apps.core.errors import NotFound
from apps.index import endings
from apps.index.models import IndexLock, IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.query_cache import CachedQuery, per_generation

_published = CachedQuery(lambda: Root.objects.published().order_by())
_locked = CachedQuery(lambda: IndexLock.objects.only("model"))


def published_roots() -> list[Root]:
    """Roots that answer questions, the latest ingest first. They may be others' as well, and so are
    only to be read."""
    # Sorted here: to spell the order takes Django as long as all else of this.
    return sorted(_published.rows(), key=_published_at, reverse=True)


def _published_at(root: Root) -> tuple[float, str]:
    """When it was published, and by which run, for those of one moment."""
    at = root.last_ingest_at
    return at.timestamp() if at else 0.0, str(root.last_run_id or "")


def damages() -> dict[str, str]:
    """Name → what its stores lack, of the published roots that lack something."""
    damaged = Root.objects.published().exclude(damage="").order_by("name")
    return dict(damaged.values_list("name", "damage"))


def find_root(path: str) -> Root:
    """The published root stored under exactly this path. Raises NotFound."""
    root = Root.objects.published().filter(path=path).first()
    if root is None:
        raise NotFound(f"No ingested folder {path}.")
    return root


def index_lock() -> IndexLock | None:
    """The embedder that all roots share; None while the index is empty."""
    return IndexLock.objects.first()


def locked_model() -> str | None:
    """Its id alone, which every search asks for."""
    return next((lock.model for lock in _locked.rows()), None)


def find_run(run_id: str | UUID) -> IngestRun:
    """Raises NotFound, also where the id is none."""
    try:
        return endings.as_known(IngestRun.objects.get(id=UUID(str(run_id))))
    except (ValueError, IngestRun.DoesNotExist):
        raise NotFound(f"No ingest run {run_id}.") from None


def active_run() -> IngestRun | None:
    """The run under way, else the one that is next."""
    runs = endings.live()
    return runs.running().first() or runs.order_by("queued_at").first()


def queued_runs() -> list[IngestRun]:
    """Runs that wait, in the order in which they will be taken."""
    return list(IngestRun.objects.filter(state="queued").order_by("queued_at"))


def live_states() -> dict[str, str]:
    """Folder → "queued", "scanning" or "embedding", of those that are being ingested now."""
    runs = endings.live().filter(dry_run=False)
    return dict(runs.values_list("path", "state"))


def live_files(root: Root) -> SourceFileQuerySet:
    """The published files of a root, by path, those that were skipped included."""
    return SourceFile.objects.filter(root=root).live().order_by("path")


def generation_files(root: Root) -> SourceFileQuerySet:
    """The files of a root that are live at `root.generation`, even if its row has moved on.

    A search caches what it reads under the generation of the `Root` it holds.
    """
    return SourceFile.objects.filter(root_id=root.id).live_at(root.generation)


@per_generation
def live_file_ids(root: Root) -> frozenset[str]:
    """Ids of the files that are live at `root.generation`, as the stores write them."""
    ids = generation_files(root).values_list("id", flat=True)
    return frozenset(str(file_id) for file_id in ids.iterator())


def unconfirmed_run(root: Root) -> IngestRun | None:
    """The run that waits for somebody to say that a root's files have gone, if its latest does."""
    if root.last_state != "needs_confirmation":
        return None
    runs = IngestRun.objects.filter(path=root.path, state="needs_confirmation")
    return runs.order_by("-queued_at").first()


def skipped_by(run: IngestRun) -> SourceFileQuerySet:
    """What a run left out, with its reasons; a dry run's too. Of what the latest run of a root
    left out, earlier ones may have said so."""
    return _of_run(run).skipped()


def listed_by(run: IngestRun) -> SourceFileQuerySet:
    """The same, and the ingested files that have a problem."""
    return _of_run(run).listed()


def _of_run(run: IngestRun) -> SourceFileQuerySet:
    latest = SourceFile.objects.live().filter(root__last_run_id=run.id)
    return (SourceFile.objects.filter(run=run) | latest).order_by("path")
