"""What of a folder differs from what is published of it: only that is ingested.

A file stays as it is where size, modification time and change time say that nobody has written to
it, and where they do not, but its content has the same hash.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.index import problems, queries
from apps.index.models import LONGEST_REASON, IngestRun, Root, SourceFile
from apps.index.root_directory import read_file
from apps.index.types import Check
from apps.ingest.runs import integrity
from apps.ingest.runs.batches import Batch
from apps.ingest.runs.guards import above, count_disappeared
from apps.ingest.types import Candidate, Discovery, FileStat, Skipped

# Raised by whoever changes how files are cut or what is kept of a chunk: every root is then
# ingested anew when its turn comes.
CHUNKER_VERSION = 1
# Raised by whoever changes which files are left out for their content: files that have not changed
# are then looked into once more, and stay where they may.
JUDGED = 1
# Paths that a database is asked for by name.
FEW = 500


def chunker_version() -> str:
    """What the chunks of a root are made by; its row keeps it."""
    included = " ".join(sorted(config().ingest_include))
    return f"{CHUNKER_VERSION}/{sha256(included.encode()).hexdigest()[:8]}/{JUDGED}"


@dataclass(frozen=True)
class Delta:
    """`files` and `skipped` are new or changed; `gone` are the rows of what is changed or is there
    no more, `emptied` of them with chunks. `staying` files stay as they are published. `problems`
    tells what to say of rows that stay, by their id; of the `published` files that are ingested
    `disappeared` are there no more."""

    files: Sequence[Candidate]
    skipped: Sequence[Skipped]
    gone: Sequence[UUID]
    emptied: int
    staying: int
    problems: Mapping[UUID, str] = field(default_factory=dict)
    published: int = 0
    disappeared: int = 0
    # As in `Published`.
    may_stay: bool = False
    may_be_kept: bool = False

    def __bool__(self) -> bool:
        return bool(self.files or self.skipped or self.gone)


class _Row(NamedTuple):
    """What of a published SourceFile tells whether it may stay."""

    path: str
    stamp: FileStat
    sha256: str
    skip_reason: str
    chunks: int
    problem: str

    @classmethod
    def all_of(cls, root: Root) -> list[Self]:
        # As tuples: whole objects take three times as long, and there may be 100,000. Ids would
        # take as long as all else, and are wanted of few.
        rows = queries.live_files(root).order_by()
        fields = rows.values_list(
            "path", "size", "mtime_ns", "ctime_ns", "sha256", "skip_reason", "chunks", "problem"
        )
        return [
            cls(path, FileStat(size, mtime, ctime), digest, reason, chunks, problem)
            for path, size, mtime, ctime, digest, reason, chunks, problem in fields
        ]


def _ids(root: Root, paths: Set[str]) -> list[tuple[str, UUID]]:
    """Path and id of the published rows of these paths."""
    rows = queries.live_files(root).order_by()
    if len(paths) <= FEW:
        rows = rows.filter(path__in=paths)
    return [(path, key) for path, key in rows.values_list("path", "id") if path in paths]


class Published:
    """The live rows of a run's folder."""

    def __init__(self, run: IngestRun) -> None:
        """Raises Unavailable where the store is away."""
        self._folder = Path(run.path)
        self._run = run
        self._root = root = Root.objects.published().filter(path=run.path).first()
        self._rows = _Row.all_of(root) if root else []
        self._may_stay = root is not None and _fits(root, run) and self._is_whole
        self._staying = {row.path: row for row in self._rows} if self._may_stay else {}

    @cached_property
    def _is_whole(self) -> bool:
        return self._run.dry_run or (self._root is not None and integrity.is_whole(self._root))

    @cached_property
    def _may_be_kept(self) -> bool:
        """Whether chunks of a file that cannot be read may go on answering, even where this run
        would cut it otherwise. Vectors of another model do not compare, and where either store has
        lost chunks they may be this file's."""
        return self._root is not None and self._root.model == self._run.model and self._is_whole

    def stamps(self) -> dict[str, FileStat]:
        """By path, those of the files whose chunks may stay, where they were chosen by the rules in
        force."""
        if self._root is None or self._root.chunker_version != chunker_version():
            return {}
        return {path: row.stamp for path, row in self._staying.items() if not row.skip_reason}

    def compared_to(self, found: Discovery, check: Check) -> Delta:
        """What is to be done so that what is published is what was found. `check` is called between
        files, since each may have to be read."""
        same = {item.path for item in found.skipped if self._says(item)}
        problem_of = self._kept(found)
        kept = frozenset(problem_of)
        for candidate in found.files:
            check()
            if self._has(candidate):
                same.add(candidate.path)
                if problems.is_solved_by_reading(self._staying[candidate.path].problem):
                    problem_of[candidate.path] = ""
        same |= kept
        gone = [row for row in self._rows if row.path not in same]
        files = [candidate for candidate in found.files if candidate.path not in same]
        ingested = {row.path: row.stamp.size for row in self._rows if not row.skip_reason}
        return Delta(
            files=files,
            skipped=[item for item in found.skipped if item.path not in same],
            gone=[key for _, key in self._ids({row.path for row in gone})],
            emptied=sum(row.chunks > 0 for row in gone),
            staying=len(found.files) - len(files),
            problems={key: problem_of[path] for path, key in self._ids(problem_of.keys())},
            may_stay=self._may_stay,
            may_be_kept=self._may_be_kept,
            published=len(ingested),
            disappeared=count_disappeared(ingested, found, kept),
        )

    def _ids(self, paths: Set[str]) -> list[tuple[str, UUID]]:
        return _ids(self._root, paths) if self._root and paths else []

    def _kept(self, found: Discovery) -> dict[str, str]:
        """The published files that cannot be read, or lie in a folder that cannot be listed, and
        what to say of them."""
        reasons = {item.path: item.reason for item in found.skipped if item.unreadable}
        if not reasons or not self._may_be_kept:
            return {}
        kept = {}
        for row in self._rows:
            where = row.path if row.path in reasons else above(row.path, reasons.keys())
            if where is not None and not row.skip_reason:
                kept[row.path] = _why_kept(reasons[where], row.problem, current=self._may_stay)
        return kept

    def _has(self, found: Candidate) -> bool:
        row = self._staying.get(found.path)
        if row is None or row.skip_reason or problems.needs_rechunking(row.problem):
            return False
        return found.stamp.is_unchanged(row.stamp) or row.sha256 == self._hash_of(found.path)

    def _hash_of(self, path: str) -> str:
        try:
            return sha256(read_file(self._folder, path)).hexdigest()
        except (NotFound, InvalidInput):
            return ""  # whoever reads it next will say why

    def _says(self, found: Skipped) -> bool:
        row = self._staying.get(found.path)
        if row is None:
            return False
        return (row.skip_reason, row.stamp.size) == (found.reason[:LONGEST_REASON], found.size)


def _why_kept(reason: str, problem: str, *, current: bool) -> str:
    """What to say of a file that is kept for `reason`, and had this problem before."""
    outdated = not current or (bool(problem) and not problems.is_solved_by_reading(problem))
    return problems.unread(reason, outdated=outdated)


class LateStays:
    """Files of a delta that stay as they are published after all, found out when it is their turn:
    they cannot be read any more, or another try to parse them failed as the one before."""

    def __init__(self, run: IngestRun, delta: Delta) -> None:
        self._path = run.path
        self._delta = delta
        self._staying: dict[UUID, SourceFile] = {}
        self._problems: dict[UUID, str] = {}

    def sort_out(self, batch: Batch) -> Batch:
        """The batch, with these files told apart from those that are written."""
        wanted = {item.path for item in batch.skipped if item.unreadable}
        wanted |= {file.path for file in batch.chunked if problems.needs_rechunking(file.problem)}
        rows = self._published(wanted)
        kept = [item for item in batch.skipped if item.unreadable and item.path in rows]
        for item in kept:
            row = rows[item.path]
            why = _why_kept(item.reason, row.problem, current=self._delta.may_stay)
            self._stay(row, why)
        same = {file.path for file in batch.chunked if self._is_same(file, rows.get(file.path))}
        for path in same:
            self._stay(rows[path], rows[path].problem)
        if not kept and not same:
            return batch
        return replace(
            batch,
            files=tuple(pair for pair in batch.files if pair[0].path not in same),
            skipped=tuple(item for item in batch.skipped if item not in kept),
            kept=tuple(kept),
            same=tuple(same),
        )

    def applied(self) -> Delta:
        """The delta without them."""
        paths = {row.path for row in self._staying.values()}
        return replace(
            self._delta,
            files=[candidate for candidate in self._delta.files if candidate.path not in paths],
            gone=[key for key in self._delta.gone if key not in self._staying],
            emptied=self._delta.emptied - sum(row.chunks > 0 for row in self._staying.values()),
            problems={**self._delta.problems, **self._problems},
        )

    def _published(self, paths: Set[str]) -> dict[str, SourceFile]:
        """The rows of those that may be kept."""
        if not paths or not self._delta.may_be_kept:
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


def _fits(root: Root, run: IngestRun) -> bool:
    return root.model == run.model and makes_the_same_chunks(root)


def makes_the_same_chunks(root: Root) -> bool:
    """Whether the files of a root would be cut today as they were for its index."""
    return _cut(root.chunker_version) == _cut(chunker_version())


def _cut(chunker_version: str) -> list[str]:
    """Return the part of a chunker version that says how files are cut."""
    return chunker_version.split("/")[:2]
