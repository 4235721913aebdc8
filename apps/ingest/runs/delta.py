"""Compares a folder with its published files. Only the difference is ingested.

A file is unchanged if its size, modification time and change time are, or else if the hash of its
content is.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from django.db.models import Q

from apps.code.paths import folders_of
from apps.code.values import ChunkedFile
from apps.index import problems, queries
from apps.index.models import LONGEST_REASON, IngestRun, Root, SourceFile
from apps.index.root_directory import digest_at
from apps.index.types import Check
from apps.ingest.discovery.selection import is_selected, select
from apps.ingest.runs import integrity
from apps.ingest.runs.batches import Batch
from apps.ingest.runs.chunker_version import makes_the_same_chunks
from apps.ingest.runs.guards import above, count_disappeared
from apps.ingest.types import Candidate, Discovery, FileStat, Skipped

# Up to this many paths are selected in SQL; more are filtered in Python.
MAX_PATHS_IN_QUERY = 500
MINUTE_NS = 60 * 10**9


@dataclass(frozen=True)
class Delta:
    """The difference between a folder and its published files."""

    files: Sequence[Candidate]  # new or changed
    skipped: Sequence[Skipped]  # new, or with a new reason
    retired: Sequence[UUID]  # ids of published rows of changed or removed files
    emptied: int  # number of retired rows that have chunks
    unchanged: int  # number of eligible files that stay as they are published
    problems: Mapping[UUID, str] = field(default_factory=dict)  # row id → its new problem
    touched: Sequence[Candidate] = ()  # unchanged files with another state than their rows
    published: int = 0  # number of published files that are not skipped
    disappeared: int = 0  # number of them that no longer exist
    head_moved: bool = False  # whether another commit is checked out than is published
    # As in `Published`.
    may_stay: bool = False
    may_stay_unread: bool = False

    def __bool__(self) -> bool:
        return bool(self.files or self.skipped or self.retired)


NO_CHANGES = Delta(files=(), skipped=(), retired=(), emptied=0, unchanged=0)


class _PublishedFile(NamedTuple):
    """The columns of a published SourceFile that tell whether the file is unchanged."""

    path: str
    stat: FileStat
    sha256: str
    encoding: str
    skip_reason: str
    chunks: int
    problem: str

    @classmethod
    def all_of(cls, root: Root, only: Sequence[str] | None) -> list[Self]:
        """only: as in `discover`"""
        # Tuples, as model instances take three times as long, and there may be 100,000. Without
        # ids, which would double the time and are needed for a few rows only.
        rows = queries.generation_files(root).order_by()
        if only is not None:
            rows = rows.filter(_may_be_replaced(only))
        stat = ("size", "mtime_ns", "ctime_ns")
        fields = rows.values_list("path", *stat, *cls._fields[2:])
        selection = select(only)
        return [
            cls(path, FileStat(size, mtime, ctime), *others)
            for path, size, mtime, ctime, *others in fields
            # SQLite's LIKE takes DOCS/ for docs/.
            if selection is None or is_selected(selection, path)
        ]


def _may_be_replaced(only: Sequence[str]) -> Q:
    """Return the condition of rows that a discovery of some paths may replace."""
    paths: set[str] = set()
    for path in only:
        # A file may have become a folder, and a folder above that is skipped is one row.
        paths |= {path, path.rstrip("/"), *folders_of(path)}
    matching = Q(path__in=paths)
    for path in only:
        if path.endswith("/"):
            matching |= Q(path__startswith=path)
    return matching


class Published:
    """The published files of a run's folder, or those of them that it looks at."""

    def __init__(self, run: IngestRun, only: Sequence[str] | None = None) -> None:
        """only: as in `discover`"""
        self._only = only
        self._folder = Path(run.path)
        self._run = run
        self._root = root = Root.objects.published().filter(path=run.path).first()
        self._rows = _PublishedFile.all_of(root, only) if root else []
        is_reusable = root and root.model == run.model and makes_the_same_chunks(root)
        self._may_stay = bool(is_reusable) and self._is_whole
        self._staying = {row.path: row for row in self._rows} if self._may_stay else {}
        self._touched: list[Candidate] = []

    @cached_property
    def _is_whole(self) -> bool:
        if self._root is None:
            return self._run.dry_run
        if self._only is not None:
            return not self._root.damage and self._root.awaited_files is None
        return self._run.dry_run or integrity.is_whole(self._root)

    @cached_property
    def _may_stay_unread(self) -> bool:
        """Whether the chunks of an unreadable file may stay published, even if they are of an older
        chunker. Not if they are of another model, or if the index has lost chunks of the root."""
        return self._root is not None and self._root.model == self._run.model and self._is_whole

    def file_stats(self) -> dict[str, FileStat]:
        """Return path → state of the published files that need not be read again."""
        return {path: row.stat for path, row in self._staying.items() if not row.skip_reason}

    def compared_to(self, discovery: Discovery, commit: str, check: Check) -> Delta:
        """Return the difference to a folder. `check` is called before each file, which may have to
        be read.

        commit: what is checked out; "" if that is not known
        """
        unchanged = {item.path for item in discovery.skipped if self._is_still_skipped(item)}
        problem_of = self._unread(discovery)
        unread = frozenset(problem_of)
        for candidate in discovery.files:
            check()
            row = self._staying.get(candidate.path)
            if row is not None and self._is_unchanged(candidate, row):
                unchanged.add(candidate.path)
                if row.problem and problems.is_solved_by_reading(row.problem):
                    problem_of[candidate.path] = ""
        unchanged |= unread
        before = self._root.commit if self._root else ""
        head_moved = commit != before and "" not in (commit, before)
        retired = [row for row in self._rows if row.path not in unchanged]
        files = [candidate for candidate in discovery.files if candidate.path not in unchanged]
        if self._root is None:
            # The newest first. By minutes, so that the files of a checkout keep their order.
            files.sort(key=lambda candidate: -(candidate.stat.mtime_ns // MINUTE_NS))
        ingested = {row.path: row.stat.size for row in self._rows if not row.skip_reason}
        disappeared = 0
        if retired:
            disappeared = count_disappeared(ingested, discovery, unread, head_moved=head_moved)
        return Delta(
            files=files,
            skipped=[item for item in discovery.skipped if item.path not in unchanged],
            retired=[key for _, key in self._ids({row.path for row in retired})],
            emptied=sum(row.chunks > 0 for row in retired),
            unchanged=len(discovery.files) - len(files),
            problems={key: problem_of[path] for path, key in self._ids(problem_of.keys())},
            touched=self._touched,
            may_stay=self._may_stay,
            may_stay_unread=self._may_stay_unread,
            published=self._root.files if self._root and self._only is not None else len(ingested),
            disappeared=disappeared,
            head_moved=head_moved,
        )

    def _ids(self, paths: Set[str]) -> list[tuple[str, UUID]]:
        """Return path and id of the published rows of these paths."""
        if not self._root or not paths:
            return []
        rows = queries.generation_files(self._root).order_by()
        if len(paths) <= MAX_PATHS_IN_QUERY:
            rows = rows.filter(path__in=paths)
        return [(path, key) for path, key in rows.values_list("path", "id") if path in paths]

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

    def _is_unchanged(self, candidate: Candidate, row: _PublishedFile) -> bool:
        if row.skip_reason or (row.problem and problems.needs_rechunking(row.problem)):
            return False
        # Discovery returns the state that it was given if nothing differs.
        if candidate.stat is row.stat:
            return True
        if row.sha256 != self._hash_of(candidate, row.encoding):
            return False
        if candidate.stat.ctime_ns or candidate.stat[:2] != row.stat[:2]:
            self._touched.append(candidate)
        return True

    def _hash_of(self, candidate: Candidate, encoding: str) -> str:
        if candidate.sha256 and not encoding:
            return candidate.sha256
        # The chunking step reads it again, and reports an error.
        return digest_at(self._folder, candidate.path, encoding)

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
        self._staying: list[SourceFile] = []  # with their new problems, unsaved

    def reconcile(self, batch: Batch) -> Batch:
        """Return the batch with these files moved to `unread` and `unchanged`."""
        paths = {item.path for item in batch.skipped if item.unreadable}
        paths |= {file.path for file in batch.chunked if problems.needs_rechunking(file.problem)}
        rows = self._published(paths)
        unread = [item for item in batch.skipped if item.unreadable and item.path in rows]
        for item in unread:
            row = rows[item.path]
            row.problem = _unread_problem(item.reason, row.problem, current=self._delta.may_stay)
            self._staying.append(row)
        unchanged = {
            file.path for file in batch.chunked if self._is_same(file, rows.get(file.path))
        }
        self._staying += [rows[path] for path in unchanged]
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
        paths = {row.path for row in self._staying}
        problem_of = {row.id: row.problem for row in self._staying}
        return replace(
            self._delta,
            files=[candidate for candidate in self._delta.files if candidate.path not in paths],
            retired=[key for key in self._delta.retired if key not in problem_of],
            emptied=self._delta.emptied - sum(row.chunks > 0 for row in self._staying),
            problems={**self._delta.problems, **problem_of},
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
