"""What of a folder differs from what is published of it: only that is ingested.

A file stays as it is where size, modification time and change time say that nobody has written to
it, and where they do not, but its content has the same hash.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from apps.ingest import queries
from apps.ingest.finding.discovery import read_file
from apps.ingest.models import LONGEST_REASON, IngestRun, Root
from apps.ingest.runs import integrity
from apps.ingest.types import Candidate, Check, Discovery, Skipped, Stamp
from codeinfo.conf import knobs
from codeinfo.errors import InvalidInput, NotFound

# Raised by whoever changes how files are cut or what is kept of a chunk: every root is then
# ingested anew when its turn comes.
CUT = 1
# Raised by whoever changes which files are left out for their content: files that have not changed
# are then looked into once more, and stay where they may.
JUDGED = 1
# Paths that a database is asked for by name.
FEW = 500


def recipe() -> str:
    """What the chunks of a root are made by; its row keeps it."""
    included = " ".join(sorted(knobs().ingest_include))
    return f"{CUT}/{sha256(included.encode()).hexdigest()[:8]}/{JUDGED}"


@dataclass(frozen=True)
class Delta:
    """`files` and `skipped` are new or changed; `gone` are the rows of what is changed or is there
    no more, `emptied` of them with chunks. `staying` files stay as they are published."""

    files: Sequence[Candidate]
    skipped: Sequence[Skipped]
    gone: Sequence[UUID]
    emptied: int
    staying: int

    def __bool__(self) -> bool:
        return bool(self.files or self.skipped or self.gone)


class _Row(NamedTuple):
    """What of a published SourceFile tells whether it may stay."""

    path: str
    stamp: Stamp
    sha256: str
    skip_reason: str
    chunks: int

    @classmethod
    def all_of(cls, root: Root) -> list[Self]:
        # As tuples: whole objects take three times as long, and there may be 100,000. Ids would
        # take as long as all else, and are wanted of few.
        rows = queries.live_files(root).order_by()
        fields = rows.values_list(
            "path", "size", "mtime_ns", "ctime_ns", "sha256", "skip_reason", "chunks"
        )
        return [
            cls(path, Stamp(size, mtime, ctime), digest, reason, chunks)
            for path, size, mtime, ctime, digest, reason, chunks in fields
        ]


def _ids(root: Root, paths: Set[str]) -> list[UUID]:
    """Of the published rows of these paths."""
    rows = queries.live_files(root).order_by()
    if len(paths) <= FEW:
        rows = rows.filter(path__in=paths)
    return [key for path, key in rows.values_list("path", "id") if path in paths]


class Published:
    """The live rows of a run's folder."""

    def __init__(self, run: IngestRun) -> None:
        """Raises Unavailable where the store is away."""
        self._folder = Path(run.path)
        self._root = root = Root.objects.published().filter(path=run.path).first()
        self._rows = _Row.all_of(root) if root else []
        may_stay = (
            root is not None and _fits(root, run) and (run.dry_run or integrity.is_whole(root))
        )
        self._staying = {row.path: row for row in self._rows} if may_stay else {}

    def stamps(self) -> dict[str, Stamp]:
        """By path, those of the files whose chunks may stay, where they were chosen by the rules in
        force."""
        if self._root is None or self._root.recipe != recipe():
            return {}
        return {path: row.stamp for path, row in self._staying.items() if not row.skip_reason}

    def compared_to(self, found: Discovery, check: Check) -> Delta:
        """What is to be done so that what is published is what was found. `check` is called between
        files, since each may have to be read."""
        same = {item.path for item in found.skipped if self._says(item)}
        for candidate in found.files:
            check()
            if self._has(candidate):
                same.add(candidate.path)
        gone = [row for row in self._rows if row.path not in same]
        files = [candidate for candidate in found.files if candidate.path not in same]
        return Delta(
            files=files,
            skipped=[item for item in found.skipped if item.path not in same],
            gone=_ids(self._root, {row.path for row in gone}) if self._root and gone else [],
            emptied=sum(row.chunks > 0 for row in gone),
            staying=len(found.files) - len(files),
        )

    def _has(self, found: Candidate) -> bool:
        row = self._staying.get(found.path)
        if row is None or row.skip_reason:
            return False
        return found.stamp.proves(row.stamp) or row.sha256 == self._hash_of(found.path)

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


def _fits(root: Root, run: IngestRun) -> bool:
    return root.model == run.model and makes_the_same_chunks(root)


def makes_the_same_chunks(root: Root) -> bool:
    """Whether the files of a root would be cut today as they were for its index."""
    return _cut(root.recipe) == _cut(recipe())


def _cut(recipe: str) -> list[str]:
    """What of a recipe tells how files are cut."""
    return recipe.split("/")[:2]
