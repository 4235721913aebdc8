"""The live rows of a root, which define what its stores must have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from apps.index import queries
from apps.index.chunk_ids import chunk_ids, parse
from apps.index.models import IngestRun, Root, SourceFile

# Chunks that are compared at once: a few megabytes of texts and vectors.
CHUNKS_AT_ONCE = 500


class FileRow(NamedTuple):
    """A live SourceFile, as a tuple: there may be 100,000."""

    id: UUID
    document: UUID
    run_id: UUID
    path: str
    language: str
    sha256: str
    chunks: int
    embedded: int
    skip_reason: str
    problem: str
    spans: bytes


@dataclass(frozen=True)
class RootVersion:
    """Changes whenever the index of a root may have changed."""

    generation: int
    run: UUID | None  # the run that published last
    busy: bool  # whether a run is in progress

    @classmethod
    def of(cls, root: Root) -> "RootVersion | None":
        """Return the current version; None if the root was removed."""
        values = Root.objects.filter(id=root.id).values_list("generation", "last_run_id").first()
        return cls(*values, is_busy(root)) if values else None


def is_busy(root: Root) -> bool:
    """Whether a run of this root is in progress."""
    return IngestRun.objects.running().filter(path=root.path).exists()


def live_rows(root: Root) -> list[FileRow]:
    rows = queries.live_files(root).order_by("path")
    return [FileRow(*values) for values in rows.values_list(*FileRow._fields)]


def batches(rows: Sequence[FileRow]) -> Iterator[list[tuple[FileRow, list[str]]]]:
    """Yield rows with their chunk ids, at most CHUNKS_AT_ONCE chunks at a time. A larger file is a
    batch by itself."""
    batch: list[tuple[FileRow, list[str]]] = []
    size = 0
    for row in rows:
        if batch and size + row.chunks > CHUNKS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append((row, list(chunk_ids(row))))
        size += row.chunks
    if batch:
        yield batch


def counted(root: Root) -> dict[str, int]:
    """Return the totals of the live rows, by field name of Root."""
    return queries.live_files(root).aggregate(
        files=Count("id", filter=Q(skip_reason="")),
        skipped=Count("id", filter=~Q(skip_reason="")),
        chunks=Coalesce(Sum("chunks"), 0),
        embedded=Coalesce(Sum("embedded"), 0),
    )


def dead_rows(root: Root) -> int:
    return SourceFile.objects.filter(root=root).dead().count()


def without_row(root: Root, ids: Sequence[str]) -> list[str]:
    """Return the chunk ids that belong to no row of the root's store, live or dead."""
    parsed = {chunk_id: parse(chunk_id) for chunk_id in ids}
    files = {file for place in parsed.values() if place for file in [place[0]]}
    rows = SourceFile.objects.filter(root__store=root.store, document__in=files).order_by()
    chunks = {str(key): count for key, count in rows.values_list("document", "chunks")}
    return [
        chunk_id
        for chunk_id, place in parsed.items()
        if place is None or place[1] >= chunks.get(place[0], 0)
    ]
