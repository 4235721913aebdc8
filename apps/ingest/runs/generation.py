"""The next generation of a root: written beside the published one, and published in one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import Exists
from django.utils import timezone

from apps.ingest import stream
from apps.ingest.models import IngestRun, Root, SourceFile
from apps.ingest.queries import find_root
from apps.ingest.runs import stores, sweep
from apps.ingest.runs.job import Stopped
from apps.ingest.runs.patience import patiently
from apps.ingest.types import Candidate, ChunkedFile, Counts, Skipped
from codeinfo.errors import Conflict

ROWS_PER_INSERT = 500


def name_taken(name: str) -> Conflict:
    return Conflict(f"Another folder is already called {name!r}.", code="NAME_TAKEN")


@dataclass(frozen=True)
class Generation:
    """What `run` writes for `root`. Nobody sees any of it before `publish`."""

    root: Root
    run: IngestRun

    @classmethod
    def begin(cls, run: IngestRun) -> "Generation":
        """Find or make the root of a run, cleared of what a dead run left in it: that would be
        published with this one's, for it bears the same number.

        Raises Conflict NAME_TAKEN, and NotFound where a folder that is to be embedded again has
        been removed meanwhile."""
        if run.operation == IngestRun.Operation.REEMBED:
            root = find_root(run.path)
            sweep.sweep_root(root)
            if root.model != run.model:
                # The lock has moved on, so nobody asks these vectors; others do not fit in here.
                stores.drop(root.id)
            return cls(root, run)
        defaults = {"name": run.name, "description": run.description, "model": run.model}
        try:
            root, _ = Root.objects.get_or_create(path=run.path, defaults=defaults)
        except IntegrityError:
            raise name_taken(run.name) from None
        sweep.sweep_root(root)
        IngestRun.objects.filter(id=run.id).update(root=root)
        return cls(root, run)

    @property
    def number(self) -> int:
        return self.root.generation + 1

    @property
    def is_first(self) -> bool:
        return self.root.generation == 0

    def add_files(self, files: Sequence[tuple[Candidate, ChunkedFile]]) -> list[SourceFile]:
        """Rows of files that are about to get vectors; the rows come first, so that after a crash
        they tell which vectors to sweep."""
        rows = [
            SourceFile(
                root=self.root,
                run=self.run,
                path=candidate.path,
                language=chunked.language,
                sha256=chunked.sha256,
                size=candidate.size,
                mtime_ns=candidate.mtime_ns,
                chunks=len(chunked.chunks),
                since=self.number,
            )
            for candidate, chunked in files
        ]
        return patiently(lambda: SourceFile.objects.bulk_create(rows))

    def add_skipped(self, skipped: Sequence[Skipped]) -> None:
        keep_skipped(self.run, skipped, root=self.root, since=self.number)

    def files_with_chunks(self) -> int:
        """How many published files would lose their chunks."""
        return SourceFile.objects.filter(root=self.root, chunks__gt=0).live().count()

    def publish(self, counts: Counts) -> None:
        """Make the new files live and the old ones dead.

        Raises Stopped if the run was cancelled before this moment, Conflict if the new name has
        been taken meanwhile, or the root removed.
        """
        # Still live for readers: this takes effect with the generation.
        old = SourceFile.objects.filter(root=self.root, since__lt=self.number, until__isnull=True)
        patiently(lambda: old.update(until=self.number))
        try:
            published = patiently(lambda: self._advance(counts))
        except IntegrityError:
            raise name_taken(self.run.name) from None
        if not published:
            self._explain()
        self.root.refresh_from_db()
        stream.roots_changed()

    @transaction.atomic
    def _advance(self, counts: Counts) -> int:
        wanted = IngestRun.objects.running().filter(id=self.run.id, cancel_requested=False)
        return Root.objects.filter(
            Exists(wanted), id=self.root.id, generation=self.root.generation
        ).update(
            generation=self.number,
            name=self.run.name,
            description=self.run.description,
            model=self.run.model,
            files=counts.files,
            chunks=counts.chunks,
            embedded=counts.embedded,
            skipped=counts.skipped,
            last_run_id=self.run.id,
            last_state="completed",
            last_error="",
            last_ingest_at=timezone.now(),
        )

    def _explain(self) -> None:
        if Root.objects.filter(id=self.root.id, generation=self.root.generation).exists():
            raise Stopped
        raise Conflict("The folder was removed or ingested by another run meanwhile.")


def keep_skipped(
    run: IngestRun, skipped: Sequence[Skipped], root: Root | None = None, since: int = 0
) -> None:
    """The files left out and why. Without a root they only belong to the run's record."""
    longest = SourceFile._meta.get_field("skip_reason").max_length
    for start in range(0, len(skipped), ROWS_PER_INSERT):
        # In pieces: a folder may hold a hundred thousand of them.
        rows = [
            SourceFile(
                root=root,
                run=run,
                path=item.path,
                size=item.size,
                since=since,
                skip_reason=item.reason[:longest],
            )
            for item in skipped[start : start + ROWS_PER_INSERT]
        ]
        patiently(partial(SourceFile.objects.bulk_create, rows))
