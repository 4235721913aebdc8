"""What the rows of a root say that its stores must hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from apps.index import queries
from apps.index.models import IngestRun, Root, SourceFile

# Chunks that are compared at once: a few megabytes of texts and vectors.
CHUNKS_AT_ONCE = 500


class FileRow(NamedTuple):
    """A live row. Tuples: there may be 100,000."""

    id: UUID
    run_id: UUID
    path: str
    language: str
    sha256: str
    chunks: int
    embedded: int
    skip_reason: str
    problem: str

    def chunk_ids(self) -> Iterator[str]:
        return (f"{self.run_id}:{self.path}:{index}" for index in range(self.chunks))


@dataclass(frozen=True)
class Moment:
    """What of a root changes with all that may change what it holds."""

    generation: int
    run: UUID | None
    busy: bool

    @classmethod
    def of(cls, root: Root) -> "Moment | None":
        """None where the root is gone."""
        found = Root.objects.filter(id=root.id).values_list("generation", "last_run_id").first()
        return cls(*found, is_busy(root)) if found else None


def is_busy(root: Root) -> bool:
    """Whether a run of this root is under way."""
    return IngestRun.objects.running().filter(path=root.path).exists()


def live_rows(root: Root) -> list[FileRow]:
    rows = queries.live_files(root).order_by("path")
    return [FileRow(*values) for values in rows.values_list(*FileRow._fields)]


def batches(rows: Sequence[FileRow]) -> Iterator[list[tuple[FileRow, list[str]]]]:
    """The rows with the ids of their chunks, a limited number of chunks at a time. A file with more
    comes alone."""
    batch: list[tuple[FileRow, list[str]]] = []
    size = 0
    for row in rows:
        if batch and size + row.chunks > CHUNKS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append((row, list(row.chunk_ids())))
        size += row.chunks
    if batch:
        yield batch


def counted(root: Root) -> dict[str, int]:
    """What the live rows add up to, by the names of the root's own fields."""
    return queries.live_files(root).aggregate(
        files=Count("id", filter=Q(skip_reason="")),
        skipped=Count("id", filter=~Q(skip_reason="")),
        chunks=Coalesce(Sum("chunks"), 0),
        embedded=Coalesce(Sum("embedded"), 0),
    )


def dead_rows(root: Root) -> int:
    return SourceFile.objects.filter(root=root).dead().count()


def without_row(root: Root, chunk_ids: Sequence[str]) -> list[str]:
    """Those of these chunks that belong to no row, live or dead."""
    paths: dict[tuple[str, str], list[str]] = {}
    unknown = []
    for chunk_id in chunk_ids:
        run, _, rest = chunk_id.partition(":")
        path, _, index = rest.rpartition(":")
        if path and index.isdecimal() and _is_uuid(run):
            paths.setdefault((run, path), []).append(chunk_id)
        else:
            unknown.append(chunk_id)
    rows = SourceFile.objects.filter(
        root=root, run_id__in={run for run, _ in paths}, path__in={path for _, path in paths}
    )
    known = {
        (str(run), path): chunks for run, path, chunks in rows.values_list("run", "path", "chunks")
    }
    for key, ids in paths.items():
        most = known.get(key, 0)
        unknown += [each for each in ids if int(each.rpartition(":")[2]) >= most]
    return unknown


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
