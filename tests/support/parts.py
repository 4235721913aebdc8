"""Roots whose parts a test writes, without a run."""

from collections.abc import Callable, Iterable, Sequence
from uuid import uuid4

import numpy as np

from apps.embedding.types import Vectors
from apps.index.chunk_ids import chunk_id
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
        Root.objects.filter(id=root.id).update(
            parts=[], revision=root.revision + 1, chunks=0, embedded=0
        )
        return
    builder = PartBuilder()
    builder.add([ReadFile(row, (), [record]) for row, record in chunks], Codes.of(units))
    written = part.write(lists.folder(), builder.part(uuid4()), lists.owner_of(root))
    live = LiveFiles(written, np.ones(len(written.files), np.bool_))
    Root.objects.filter(id=root.id).update(
        parts=lists.listed([live]),
        revision=root.revision + 1,
        chunks=len(chunks),
        embedded=len(chunks),
    )
    root.refresh_from_db()


def chunk_ids(root: Root, *, live: bool = True) -> list[str]:
    """The ids of the chunks in the parts of a root, sorted: of live files, or of all."""
    root = Root.objects.get(id=root.id)
    return sorted(
        chunk_id(file.source_file, of_part.part.columns.first.item(place) + row)
        for of_part in lists.read(root).parts
        for place, file in enumerate(of_part.part.files)
        if of_part.live[place] or not live
        for row in range(of_part.part.starts[place + 1] - of_part.part.starts[place])
    )


def ids_of_rows(files: Iterable[SourceFile]) -> list[str]:
    """The ids that the chunks of some files have, sorted."""
    return sorted(chunk_id(file.document, index) for file in files for index in range(file.chunks))


def parts_on_disk() -> set[str]:
    return {path.stem for path in lists.folder().glob(f"*{part.SUFFIX}")}


def unlisted_parts() -> set[str]:
    """The names of the parts that no root lists."""
    listed = {entry["name"] for root in Root.objects.all() for entry in root.parts}
    return parts_on_disk() - listed


def clear_index() -> None:
    """Delete all parts of this worker's folder: those of tests whose rows are gone, too."""
    opened_roots.keep_only([])
    for path in lists.folder().glob("*"):
        path.unlink()


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
