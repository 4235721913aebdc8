"""The live rows of a root, which define what its index must have."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from apps.index import queries
from apps.index.models import IngestRun, Root, SourceFile


class FileRow(NamedTuple):
    """A live SourceFile, as a tuple: there may be 100,000."""

    id: UUID
    document: UUID
    run_id: UUID
    path: str
    language: str
    sha256: str
    encoding: str
    chunks: int
    embedded: int
    skip_reason: str
    problem: str
    spans: bytes


@dataclass(frozen=True)
class RootVersion:
    """Changes whenever the index of a root may have changed."""

    generation: int
    revision: int
    run: UUID | None  # the run that published last
    busy: bool  # whether a run is in progress

    @classmethod
    def of(cls, root: Root) -> "RootVersion | None":
        """Return the current version; None if the root was removed."""
        rows = Root.objects.filter(id=root.id)
        values = rows.values_list("generation", "revision", "last_run_id").first()
        return cls(*values, is_busy(root)) if values else None


def is_busy(root: Root) -> bool:
    """Whether a run of this root is in progress."""
    return IngestRun.objects.running().filter(path=root.path).exists()


def live_rows(root: Root) -> list[FileRow]:
    rows = queries.live_files(root).order_by("path")
    return [FileRow(*values) for values in rows.values_list(*FileRow._fields)]


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
