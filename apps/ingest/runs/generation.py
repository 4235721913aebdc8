"""The next generation of a root, which is written unpublished, and published in one step."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.code.values import ChunkedFile
from apps.core.errors import Conflict
from apps.core.values.ids import uuid7
from apps.core.values.slices import slices
from apps.index import changes, freeze, spans
from apps.index.mapped import lists
from apps.index.mapped.live_files import LiveFiles
from apps.index.models import LONGEST_REASON, IngestRun, Root, SourceFile
from apps.index.queries import find_root
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery.checkout import NO_GIT, Checkout
from apps.ingest.runs import shared, sweep
from apps.ingest.runs.chunker_version import chunker_version
from apps.ingest.runs.delta import NO_CHANGES, Delta
from apps.ingest.runs.job import RunCancelled
from apps.ingest.runs.retry import retry_on_locked
from apps.ingest.types import Candidate, Skipped

ROWS_PER_INSERT = 500


def name_taken(name: str) -> Conflict:
    return Conflict(
        f"Another folder is already called {name!r}. Choose another name.", code="NAME_TAKEN"
    )


def ended_by_another() -> Conflict:
    return Conflict("Another process has ended this run, as it had no heartbeat for too long.")


@dataclass(frozen=True)
class Generation:
    """What `run` writes for `root`. Queries do not see it before `publish`."""

    root: Root
    run: IngestRun
    check: Check = never_cancelled  # called between the steps of long operations
    checkout: Checkout = NO_GIT  # what the files are of

    @classmethod
    @freeze.changing()
    def begin(
        cls,
        run: IngestRun,
        files: Sequence[Candidate],
        check: Check = never_cancelled,
        checkout: Checkout = NO_GIT,
    ) -> "Generation":
        """Find or create the root of a run, and undo what a dead run left in it: its rows and those
        that it retired have the same generation number, so this run would publish them too.

        files: what the run is going to ingest; it tells whose store a new root shares

        Raises Conflict NAME_TAKEN, and NotFound if the root of a re-embed was removed.
        """
        root = cls._root_of(run, files, check)
        retired = SourceFile.objects.filter(root=root, until__gt=root.generation)
        retry_on_locked(partial(retired.update, until=None))
        sweep.sweep_root(root)
        if root.model != run.model:
            # The index is locked to another model by now: these vectors are not searched.
            shared.leave_store(root, run, files, check)
        IngestRun.objects.filter(id=run.id).update(root=root)
        return cls(root, run, check, checkout)

    @staticmethod
    def _root_of(run: IngestRun, files: Sequence[Candidate], check: Check) -> Root:
        if run.operation == IngestRun.Operation.REEMBED:
            return find_root(run.path)
        defaults: dict[str, Any] = {
            "name": run.name,
            "description": run.description,
            "model": run.model,
        }
        is_new = not Root.objects.filter(path=run.path).exists()
        if is_new and (store := shared.find_store(run, files, check)):
            defaults["store"] = store
        try:
            return Root.objects.get_or_create(path=run.path, defaults=defaults)[0]
        except IntegrityError:
            raise name_taken(run.name) from None

    @property
    def number(self) -> int:
        return self.root.generation + 1

    @property
    def is_first(self) -> bool:
        return self.root.generation == 0

    def rows_of(self, files: Sequence[tuple[Candidate, ChunkedFile]]) -> list[SourceFile]:
        """Return unsaved rows of files."""
        return [
            SourceFile(
                id=uuid7(),
                root=self.root,
                run=self.run,
                path=candidate.path,
                language=chunked.language,
                sha256=chunked.sha256,
                encoding=chunked.encoding,
                **candidate.stat._asdict(),
                chunks=len(chunked.chunks),
                spans=spans.pack(chunked.chunks),
                problem=chunked.problem,
                since=self.number,
            )
            for candidate, chunked in files
        ]

    def shared_rows_of(
        self, files: Sequence[tuple[Candidate, shared.SharedFile]]
    ) -> list[dict[str, object]]:
        """Return rows, for `add_files`, of files that take over the documents of other roots'
        rows."""
        own = {"root_id": self.root.id, "run_id": self.run.id, "since": self.number}
        return [file._asdict() | candidate.stat._asdict() | own for candidate, file in files]

    def add_files(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Save the rows of files before their texts are written, so that a sweep
        finds these after a crash, and deletes no text that is in use."""
        retry_on_locked(lambda: SourceFile.objects.insert(rows))

    def add_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Save the rows of skipped files."""
        save_skipped(self.run, skipped, root=self.root, since=self.number)

    @freeze.changing()
    def retire(self, delta: Delta) -> None:
        """Give the retired rows their last generation. They stay live until `publish`."""
        for part in slices(delta.retired, ROWS_PER_INSERT):
            self.check()
            retry_on_locked(
                partial(SourceFile.objects.filter(id__in=part).update, until=self.number)
            )

    def as_published(self) -> Root:
        """Return the root as `publish` will leave it, unsaved. Call it after `retire`."""
        root = copy(self.root)
        root.generation, root.model = self.number, self.run.model
        for name, count in self._counts.items():
            setattr(root, name, count)
        return root

    @freeze.changing()
    def publish(self, delta: Delta, parts: Sequence[LiveFiles] = ()) -> None:
        """Make the new rows live and the retired ones dead, in one step, after `retire`.

        parts: of the new generation; unused for an empty delta

        The run is claimed first: a later cancel is too late, and after an earlier one there is
        nothing to claim. An empty delta leaves the generation number, so that caches stay valid.
        Raise RunCancelled if the run was cancelled, and Conflict if the name was taken, the root
        removed or the run ended meanwhile.
        """
        claimable = IngestRun.objects.running().filter(id=self.run.id, cancel_requested=False)
        if not retry_on_locked(partial(claimable.update, publishing=True)):
            if IngestRun.objects.running().filter(id=self.run.id).exists():
                raise RunCancelled
            raise ended_by_another()
        self._publish(delta, parts, None)

    @freeze.changing()
    def publish_slice(self, parts: Sequence[LiveFiles], awaited: int) -> None:
        """Make the rows live that a first run has written so far. It can still be cancelled.

        awaited: how many files it has found

        Raises RunCancelled, and Conflict as `publish`.
        """
        self.check()
        self._publish(NO_CHANGES, parts, awaited)

    def _publish(self, delta: Delta, parts: Sequence[LiveFiles], awaited: int | None) -> None:
        try:
            published = retry_on_locked(lambda: self.advance(delta, parts, awaited))
        except IntegrityError:
            raise name_taken(self.run.name) from None
        if not published:
            self._raise_unpublished()
        self.root.refresh_from_db()
        changes.roots_changed()

    @transaction.atomic
    def advance(self, delta: Delta, parts: Sequence[LiveFiles], awaited: int | None) -> int:
        changed = _looked_at(self.run, self.checkout)
        if delta or awaited:
            changed |= {"generation": self.number, "revision": 0, "parts": lists.listed(parts)}
            changed |= self._counts
        if awaited:
            changed |= {"last_state": "embedding"}
        current = Root.objects.filter(
            id=self.root.id, generation=self.root.generation, revision=self.root.revision
        )
        published = current.exclude(fenced_run_id=self.run.id).update(
            name=self.run.name,
            description=self.run.description,
            model=self.run.model,
            plain_folder=self.run.plain_folder,
            chunker_version=chunker_version(),
            **changed,
            awaited_files=awaited,
            last_run_id=self.run.id,
            damage="",
        )
        if published:
            _save_problems(delta.problems)
            _save_states(self.root.id, delta.touched)
        return published

    @cached_property
    def _counts(self) -> dict[str, int]:
        """The totals of all rows that will be live, after `retire`. A run that looks at some paths
        counts its own rows only."""
        rows = SourceFile.objects.filter(root=self.root).order_by()
        if self.run.paths is None:
            return rows.filter(until__isnull=True).totals()
        added = rows.filter(since=self.number).totals()
        removed = rows.filter(until=self.number).totals()
        return {name: getattr(self.root, name) + added[name] - removed[name] for name in added}

    def _raise_unpublished(self) -> None:
        root = Root.objects.filter(id=self.root.id).first()
        if root is None:
            raise Conflict("The folder was removed meanwhile.")
        if root.fenced_run_id == self.run.id:
            raise ended_by_another()
        raise Conflict(
            f"The folder was ingested by another run meanwhile: version {root.generation} was "
            f"published, where this run found {self.root.generation}."
        )


def confirm(run: IngestRun, checkout: Checkout, touched: Sequence[Candidate]) -> None:
    """Save that an automatic run has found a folder as it is published.

    touched: as in Delta
    """
    root = find_root(run.path)
    _save_states(root.id, touched)
    roots = Root.objects.filter(id=root.id)
    # It was not ingested: lists keep their order.
    found = _looked_at(run, checkout)
    del found["last_ingest_at"]
    retry_on_locked(partial(roots.update, **found))
    changes.roots_changed()


def _save_states(root: UUID, touched: Sequence[Candidate]) -> None:
    """Save the states of files whose content is as it is published."""
    rows = SourceFile.objects.filter(root=root, until__isnull=True).ingested()
    for part in slices(touched, ROWS_PER_INSERT):
        stats = {candidate.path: candidate.stat for candidate in part}
        found = list(rows.filter(path__in=list(stats)).order_by().only("path"))
        for row in found:
            row.size, row.mtime_ns, row.ctime_ns = stats[row.path]
        retry_on_locked(
            partial(SourceFile.objects.bulk_update, found, ["size", "mtime_ns", "ctime_ns"])
        )


def _looked_at(run: IngestRun, checkout: Checkout) -> dict[str, Any]:
    """Return the column values of a root whose files are published as a run has found them."""
    return {
        **({"looked_at": run.started_at} if run.paths is None else {}),
        **checkout._asdict(),
        "last_state": "completed",
        "last_error": "",
        "last_ingest_at": timezone.now(),
    }


def _save_problems(problems: Mapping[UUID, str]) -> None:
    """Save row id → problem. An empty problem clears it."""
    by_text: defaultdict[str, list[UUID]] = defaultdict(list)
    for key, text in problems.items():
        by_text[text[:LONGEST_REASON]].append(key)
    for text, keys in by_text.items():
        for part in slices(keys, ROWS_PER_INSERT):
            SourceFile.objects.filter(id__in=part).exclude(problem=text).update(problem=text)


def save_skipped(
    run: IngestRun, skipped: Sequence[Skipped], root: Root | None = None, since: int = 0
) -> None:
    """Save the rows of skipped files. Without a root, they are the skip list of the run only."""
    # In parts, as a folder may have 100,000 of them.
    for part in slices(skipped, ROWS_PER_INSERT):
        rows = [
            {
                "root_id": root.id if root else None,
                "run_id": run.id,
                "path": item.path,
                "size": item.size,
                "since": since,
                "skip_reason": item.reason[:LONGEST_REASON],
            }
            for item in part
        ]
        retry_on_locked(partial(SourceFile.objects.insert, rows))
