"""Roots whose parts a test writes, without a run."""

from collections.abc import Callable, Sequence
from uuid import uuid4

import numpy as np

from apps.embedding.types import Vectors
from apps.index.mapped import lists, part
from apps.index.mapped.codes import Codes
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.opened import opened_roots
from apps.index.mapped.part import Part
from apps.index.mapped.part_builder import PartBuilder, ReadFile
from apps.index.models import Root, SourceFile
from apps.index.types import ChunkRecord


def list_chunks(
    root: Root, chunks: Sequence[tuple[SourceFile, ChunkRecord]], units: Vectors
) -> None:
    """Have a root list one part with these chunks, each the only one of its file, and their vectors
    of unit length: float32 (len(chunks), dimension)."""
    if not chunks:
        Root.objects.filter(id=root.id).update(parts=[], revision=root.revision + 1, embedded=0)
        return
    builder = PartBuilder()
    builder.add([ReadFile(row, (), [record]) for row, record in chunks], Codes.of(units))
    written = part.write(lists.folder(), builder.part(uuid4()), lists.owner_of(root))
    live = LiveFiles(written, np.ones(len(written.files), np.bool_))
    Root.objects.filter(id=root.id).update(
        parts=lists.listed([live]), revision=root.revision + 1, embedded=len(chunks)
    )
    root.refresh_from_db()


def lose_parts(root: Root) -> None:
    """Delete the files of the index of a root, as a disk may, before this process maps them."""
    opened_roots.keep_only([])
    for entry in root.parts:
        part.path_of(lists.folder(), entry["name"]).unlink(missing_ok=True)


def rewrite_part(root: Root, change: Callable[[Part], Part]) -> None:
    """Have a root list its only part as `change` returns it."""
    (live,) = lists.read(root).parts
    written = part.write(lists.folder(), change(live.part), lists.owner_of(root))
    entry = lists.listed([LiveFiles(written, live.live)])
    Root.objects.filter(id=root.id).update(parts=entry, revision=root.revision + 1)
    root.refresh_from_db()


def spoil_part(root: Root) -> None:
    """Change a byte in the middle of the first part of a root."""
    path = part.path_of(lists.folder(), root.parts[0]["name"])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
