"""The live rows of a root, which define what its index must have."""

from typing import NamedTuple
from uuid import UUID

from apps.index import queries
from apps.index.models import IngestRun, Root
from apps.index.spans import Span, unpack


class FileRow(NamedTuple):
    """A live SourceFile, as a tuple: there may be 100,000."""

    id: UUID
    document: UUID
    path: str
    language: str
    sha256: str
    encoding: str
    chunks: int
    embedded: int
    skip_reason: str
    problem: str
    spans: bytes

    def read_spans(self) -> list[Span]:
        """The places of its chunks; none if they are damaged."""
        try:
            return unpack(self.spans)
        except ValueError:
            return []


def version_of(root: Root) -> tuple[object, ...] | None:
    """Return what changes whenever the index of a root may have changed; None if the root was
    removed."""
    columns = "generation", "revision", "last_run_id"
    values = Root.objects.filter(id=root.id).values_list(*columns).first()
    return (*values, is_busy(root)) if values else None


def is_busy(root: Root) -> bool:
    """Whether a run of this root is in progress."""
    return IngestRun.objects.running().filter(path=root.path).exists()


def live_rows(root: Root) -> list[FileRow]:
    rows = queries.live_files(root).order_by("path")
    return [FileRow(*values) for values in rows.values_list(*FileRow._fields)]
