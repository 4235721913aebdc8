"""Compares a folder with its published files. Only the difference is ingested.

A file is unchanged if its size, modification time and change time are, or else if the hash of its
content is.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core.errors import InvalidInput, NotFound
from apps.index import problems, queries
from apps.index.models import LONGEST_REASON, IngestRun, Root, SourceFile
from apps.index.root_directory import read_file
from apps.index.types import Check
from apps.ingest.runs import integrity
from apps.ingest.runs.batches import Batch
from apps.ingest.runs.chunker_version import makes_the_same_chunks
from apps.ingest.runs.guards import above, count_disappeared
from apps.ingest.types import Candidate, Discovery, FileStat, Skipped

# Up to this many paths are selected in SQL; more are filtered in Python.
MAX_PATHS_IN_QUERY = 500


@dataclass(frozen=True)
class Delta:
    """The difference between a folder and its published files."""

    files: Sequence[Candidate]  # new or changed
    skipped: Sequence[Skipped]  # new, or with a new reason
    retired: Sequence[UUID]  # ids of published rows of changed or removed files
    emptied: int  # number of retired rows that have chunks
    unchanged: int  # number of eligible files that stay as they are published
    problems: Mapping[UUID, str] = field(default_factory=dict)  # row id → its new problem
    published: int = 0  # number of published files that are not skipped
    disappeared: int = 0  # number of them that no longer exist
    # As in `Published`.
    may_stay: bool = False
    may_stay_unread: bool = False

    def __bool__(self) -> bool:
        return bool(self.files or self.skipped or self.retired)


class _PublishedFile(NamedTuple):
    """The columns of a published SourceFile that tell whether the file is unchanged."""

    path: str
    stat: FileStat
    sha256: str
    skip_reason: str
    chunks: int
    problem: str

    @classmethod
    def all_of(cls, root: Root) -> list[Self]:
        # Tuples, as model instances take three times as long, and there may be 100,000. Without
        # ids, which would double the time and are needed for a few rows only.
        rows = queries.generation_files(root).order_by()
        fields = rows.values_list(
            "path", "size", "mtime_ns", "ctime_ns", "sha256", "skip_reason", "chunks", "problem"
        )
        return [
            cls(path, FileStat(size, mtime, ctime), digest, reason, chunks, problem)
            for path, size, mtime, ctime, digest, reason, chunks, problem in fields
        ]


def _ids(root: Root, paths: Set[str]) -> list[tuple[str, UUID]]:
    """Return path and id of the published rows of these paths."""
    rows = queries.generation_files(root).order_by()
    if len(paths) <= MAX_PATHS_IN_QUERY:
        rows = rows.filter(path__in=paths)
    return [(path, key) for path, key in rows.values_list("path", "id") if path in paths]


class Published:
    """The published files of a run's folder."""

    def __init__(self, run: IngestRun) -> None:
        self._folder = Path(run.path)
        self._run = run
        self._root = root = Root.objects.published().filter(path=run.path).first()
        self._rows = _PublishedFile.all_of(root) if root else []
        self._may_stay = root is not None and _is_reusable(root, run) and self._is_whole
        self._staying = {row.path: row for row in self._rows} if self._may_stay else {}

    @cached_property
    def _is_whole(self) -> bool:
        return self._run.dry_run or (self._root is not None and integrity.is_whole(self._root))

    @cached_property
    def _may_stay_unread(self) -> bool:
        """Whether the chunks of an unreadable file may stay published, even if they are of an older
        chunker. Not if they are of another model, or if the index has lost chunks of the root."""
        return self._root is not None and self._root.model == self._run.model and self._is_whole

    def file_stats(self) -> dict[str, FileStat]:
        """Return path → state of the published files that need not be read again."""
        return {path: row.stat for path, row in self._staying.items() if not row.skip_reason}

    def compared_to(self, discovery: Discovery, check: Check) -> Delta:
        """Return the difference to a folder. `check` is called before each file, which may have to
        be read."""
        unchanged = {item.path for item in discovery.skipped if self._is_still_skipped(item)}
        problem_of = self._unread(discovery)
        unread = frozenset(problem_of)
        for candidate in discovery.files:
            check()
            if self._is_unchanged(candidate):
                unchanged.add(candidate.path)
                if problems.is_solved_by_reading(self._staying[candidate.path].problem):
                    problem_of[candidate.path] = ""
        unchanged |= unread
        retired = [row for row in self._rows if row.path not in unchanged]
        files = [candidate for candidate in discovery.files if candidate.path not in unchanged]
        ingested = {row.path: row.stat.size for row in self._rows if not row.skip_reason}
        return Delta(
            files=files,
            skipped=[item for item in discovery.skipped if item.path not in unchanged],
            retired=[key for _, key in self._ids({row.path for row in retired})],
            emptied=sum(row.chunks > 0 for row in retired),
            unchanged=len(discovery.files) - len(files),
            problems={key: problem_of[path] for path, key in self._ids(problem_of.keys())},
            may_stay=self._may_stay,
            may_stay_unread=self._may_stay_unread,
            published=len(ingested),
            disappeared=count_disappeared(ingested, discovery, unread),
        )

    def _ids(self, paths: Set[str]) -> list[tuple[str, UUID]]:
        return _ids(self._root, paths) if self._root and paths else []

    def _unread(self, discovery: Discovery) -> dict[str, str]:
        """Return path → problem of the published files that cannot be read now, or whose folder
        cannot be listed."""
        reasons = {item.path: item.reason for item in discovery.skipped if item.unreadable}
        if not reasons or not self._may_stay_unread:
            return {}
        problem_of = {}
        for row in self._rows:
            cause = row.path if row.path in reasons else above(row.path, reasons.keys())
            if cause is not None and not row.skip_reason:
                problem = _unread_problem(reasons[cause], row.problem, current=self._may_stay)
                problem_of[row.path] = problem
        return problem_of

    def _is_unchanged(self, candidate: Candidate) -> bool:
        row = self._staying.get(candidate.path)
        if row is None or row.skip_reason or problems.needs_rechunking(row.problem):
            return False
        if candidate.stat.is_unchanged(row.stat):
            return True
        return row.sha256 == self._hash_of(candidate.path)

    def _hash_of(self, path: str) -> str:
        try:
            return sha256(read_file(self._folder, path)).hexdigest()
        except (NotFound, InvalidInput):
            return ""  # the chunking step reads it again, and reports the error

    def _is_still_skipped(self, item: Skipped) -> bool:
        row = self._staying.get(item.path)
        if row is None:
            return False
        return (row.skip_reason, row.stat.size) == (item.reason[:LONGEST_REASON], item.size)


def _unread_problem(reason: str, problem: str, *, current: bool) -> str:
    """Return the new problem of a published file that cannot be read.

    reason: why not; problem: its earlier one; current: whether its chunker is the current one
    """
    outdated = not current or (bool(problem) and not problems.is_solved_by_reading(problem))
    return problems.unread(reason, outdated=outdated)


class Reconciler:
    """Removes files from a delta that stay as they are published after all.

    This is known only after the delta was computed: they can no longer be read, or they were parsed
    again and failed in the same way.
    """

    def __init__(self, run: IngestRun, delta: Delta) -> None:
        self._path = run.path
        self._delta = delta
        self._staying: dict[UUID, SourceFile] = {}
        self._problems: dict[UUID, str] = {}

    def reconcile(self, batch: Batch) -> Batch:
        """Return the batch with these files moved to `unread` and `unchanged`."""
        paths = {item.path for item in batch.skipped if item.unreadable}
        paths |= {file.path for file in batch.chunked if problems.needs_rechunking(file.problem)}
        rows = self._published(paths)
        unread = [item for item in batch.skipped if item.unreadable and item.path in rows]
        for item in unread:
            row = rows[item.path]
            problem = _unread_problem(item.reason, row.problem, current=self._delta.may_stay)
            self._stay(row, problem)
        unchanged = {
            file.path for file in batch.chunked if self._is_same(file, rows.get(file.path))
        }
        for path in unchanged:
            self._stay(rows[path], rows[path].problem)
        if not unread and not unchanged:
            return batch
        return replace(
            batch,
            files=tuple(pair for pair in batch.files if pair[0].path not in unchanged),
            skipped=tuple(item for item in batch.skipped if item not in unread),
            unread=tuple(unread),
            unchanged=tuple(unchanged),
        )

    def delta(self) -> Delta:
        """Return the delta without these files."""
        paths = {row.path for row in self._staying.values()}
        return replace(
            self._delta,
            files=[candidate for candidate in self._delta.files if candidate.path not in paths],
            retired=[key for key in self._delta.retired if key not in self._staying],
            emptied=self._delta.emptied - sum(row.chunks > 0 for row in self._staying.values()),
            problems={**self._delta.problems, **self._problems},
        )

    def _published(self, paths: Set[str]) -> dict[str, SourceFile]:
        """Return path → row of the published files that may stay."""
        if not paths or not self._delta.may_stay_unread:
            return {}
        rows = SourceFile.objects.filter(root__path=self._path).live().ingested()
        return {row.path: row for row in rows.filter(path__in=paths)}

    def _is_same(self, file: ChunkedFile, row: SourceFile | None) -> bool:
        if row is None or not self._delta.may_stay:
            return False
        return bool(file.problem) and (file.sha256, file.problem) == (row.sha256, row.problem)

    def _stay(self, row: SourceFile, problem: str) -> None:
        self._staying[row.id] = row
        self._problems[row.id] = problem


def _is_reusable(root: Root, run: IngestRun) -> bool:
    return root.model == run.model and makes_the_same_chunks(root)
