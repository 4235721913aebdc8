"""The next generation of a root: written beside the published one, and published in one step."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.code.values import ChunkedFile
from apps.core.errors import Conflict
from apps.index import changes, freeze, stores
from apps.index.models import LONGEST_REASON, IngestRun, Root, SourceFile
from apps.index.queries import find_root
from apps.index.types import Check, never_cancelled
from apps.ingest.runs import sweep
from apps.ingest.runs.delta import Delta, chunker_version
from apps.ingest.runs.job import Stopped
from apps.ingest.runs.retry import retry_on_locked
from apps.ingest.types import Candidate, Counts, Skipped

ROWS_PER_INSERT = 500


def name_taken(name: str) -> Conflict:
    return Conflict(f"Another folder is already called {name!r}.", code="NAME_TAKEN")


@dataclass(frozen=True)
class Generation:
    """What `run` writes for `root`. Nobody sees any of it before `publish`. `check` is called
    between the steps of what takes long where there are very many files."""

    root: Root
    run: IngestRun
    check: Check = never_cancelled

    @classmethod
    @freeze.index.changing()
    def begin(cls, run: IngestRun, check: Check = never_cancelled) -> "Generation":
        """Find or make the root of a run, cleared of what a dead run left in it: that would be
        published with this one's, for it bears the same number.

        Raises Conflict NAME_TAKEN, and NotFound where a folder that is to be embedded again has
        been removed meanwhile."""
        if run.operation == IngestRun.Operation.REEMBED:
            root = find_root(run.path)
            sweep.sweep_root(root, check)
            if root.model != run.model:
                # The lock has moved on, so nobody asks these vectors; others do not fit in here.
                stores.drop(root.id, check)
            return cls(root, run, check)
        defaults = {"name": run.name, "description": run.description, "model": run.model}
        try:
            root, _ = Root.objects.get_or_create(path=run.path, defaults=defaults)
        except IntegrityError:
            raise name_taken(run.name) from None
        sweep.sweep_root(root, check)
        IngestRun.objects.filter(id=run.id).update(root=root)
        return cls(root, run, check)

    @property
    def number(self) -> int:
        return self.root.generation + 1

    @property
    def is_first(self) -> bool:
        return self.root.generation == 0

    def rows_of(self, files: Sequence[tuple[Candidate, ChunkedFile]]) -> list[SourceFile]:
        """Rows of files, not saved yet."""
        return [
            SourceFile(
                root=self.root,
                run=self.run,
                path=candidate.path,
                language=chunked.language,
                sha256=chunked.sha256,
                size=candidate.stamp.size,
                mtime_ns=candidate.stamp.mtime_ns,
                ctime_ns=candidate.stamp.ctime_ns,
                chunks=len(chunked.chunks),
                problem=chunked.problem,
                since=self.number,
            )
            for candidate, chunked in files
        ]

    def add_files(self, rows: Sequence[SourceFile]) -> None:
        """Save the rows of files that are about to get vectors; the rows come first, so that after
        a crash they tell which vectors to sweep."""
        retry_on_locked(lambda: SourceFile.objects.bulk_create(rows))

    def add_skipped(self, skipped: Sequence[Skipped]) -> None:
        keep_skipped(self.run, skipped, root=self.root, since=self.number)

    @freeze.index.changing()
    def publish(self, delta: Delta) -> None:
        """Make the new files live and those dead that are gone. Where nothing differs, the
        generation stays, and with it what is held of it in memory.

        Raises Stopped if the run was cancelled before this moment, Conflict if the new name has
        been taken meanwhile, or the root removed.
        """
        for start in range(0, len(delta.gone), ROWS_PER_INSERT):
            self.check()
            # Still live for readers: this takes effect with the generation.
            some = delta.gone[start : start + ROWS_PER_INSERT]
            retry_on_locked(
                partial(SourceFile.objects.filter(id__in=some).update, until=self.number)
            )
        try:
            published = retry_on_locked(lambda: self._advance(delta))
        except IntegrityError:
            raise name_taken(self.run.name) from None
        if not published:
            self._explain()
        self.root.refresh_from_db()
        changes.roots_changed()

    @transaction.atomic
    def _advance(self, delta: Delta) -> int:
        changed = {"generation": self.number, **asdict(self._counts())} if delta else {}
        wanted = IngestRun.objects.running().filter(id=self.run.id, cancel_requested=False)
        published = Root.objects.filter(
            Exists(wanted), id=self.root.id, generation=self.root.generation
        ).update(
            name=self.run.name,
            description=self.run.description,
            model=self.run.model,
            plain_folder=self.run.plain_folder,
            chunker_version=chunker_version(),
            **changed,
            last_run_id=self.run.id,
            last_state="completed",
            last_error="",
            damage="",
            last_ingest_at=timezone.now(),
        )
        if published:
            _tell_problems(delta.problems)
        return published

    def _counts(self) -> Counts:
        """Of all rows that will be live."""
        rows = SourceFile.objects.filter(root=self.root, until__isnull=True)
        counted = rows.aggregate(
            files=Count("id", filter=Q(skip_reason="")),
            skipped=Count("id", filter=~Q(skip_reason="")),
            chunks=Coalesce(Sum("chunks"), 0),
            embedded=Coalesce(Sum("embedded"), 0),
        )
        return Counts(**counted)

    def _explain(self) -> None:
        if Root.objects.filter(id=self.root.id, generation=self.root.generation).exists():
            raise Stopped
        raise Conflict("The folder was removed or ingested by another run meanwhile.")


def _tell_problems(problems: Mapping[UUID, str]) -> None:
    """Say of rows that stay what is wrong with them, or that nothing is any more."""
    by_text: defaultdict[str, list[UUID]] = defaultdict(list)
    for key, text in problems.items():
        by_text[text[:LONGEST_REASON]].append(key)
    for text, keys in by_text.items():
        for start in range(0, len(keys), ROWS_PER_INSERT):
            some = keys[start : start + ROWS_PER_INSERT]
            SourceFile.objects.filter(id__in=some).exclude(problem=text).update(problem=text)


def keep_skipped(
    run: IngestRun, skipped: Sequence[Skipped], root: Root | None = None, since: int = 0
) -> None:
    """The files left out and why. Without a root they only belong to the run's record."""
    for start in range(0, len(skipped), ROWS_PER_INSERT):
        # In pieces: a folder may hold a hundred thousand of them.
        rows = [
            SourceFile(
                root=root,
                run=run,
                path=item.path,
                size=item.size,
                since=since,
                skip_reason=item.reason[:LONGEST_REASON],
            )
            for item in skipped[start : start + ROWS_PER_INSERT]
        ]
        retry_on_locked(partial(SourceFile.objects.bulk_create, rows))
