"""Which parts of the index the generation of a run has.

They are the new ones and those that the root or another root of its store has listed, with the
files of the generation live.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from apps.core.errors import Unavailable
from apps.index import queries
from apps.index.mapped import lists
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import Part
from apps.index.models import SourceFile
from apps.ingest.runs.delta import Delta
from apps.ingest.runs.generation import Generation

# Files that a run has read or retired, of which the parts are listed without reading all rows.
FEW = 1_000


def parts_of(generation: Generation, delta: Delta, written: Sequence[Part]) -> list[LiveFiles]:
    """Return the parts of a generation. Call it after `retire`.

    written: the parts of the run

    Raises Unavailable if chunks are in no part.
    """
    root = generation.as_published()
    if len(delta.retired) + len(delta.files) <= FEW and not generation.is_first:
        parts = _changed(generation, delta, written)
        if sum(live_part.rows for live_part in parts) == root.chunks:
            return parts
    rows = queries.generation_files(root).filter(chunks__gt=0).order_by()
    documents = {str(document) for document in rows.values_list("document", flat=True).iterator()}
    parts = lists.taken(_groups(generation, written), documents)
    found = sum(live_part.rows for live_part in parts)
    if found != root.chunks:
        text = f"The parts of {root.path} have {found:,} of {root.chunks:,} passages"
        raise Unavailable(text, code="INDEX_DAMAGED")
    return parts


def _changed(generation: Generation, delta: Delta, written: Sequence[Part]) -> list[LiveFiles]:
    """Return the parts that the root lists, without the retired files, and the new ones. They lack
    what other roots of the store have."""
    retired = SourceFile.objects.filter(id__in=list(delta.retired)).order_by()
    documents = {str(document) for document in retired.values_list("document", flat=True)}
    before = [one.without(documents) for one in lists.read(generation.root).parts]
    new = [LiveFiles(part, np.ones(len(part.columns.first), np.bool_)) for part in written]
    return [live_part for live_part in [*before, *new] if live_part.live.any()]


def _groups(generation: Generation, written: Sequence[Part]) -> Iterator[Sequence[Part]]:
    yield [live_part.part for live_part in lists.read(generation.root).parts]
    yield written
    for other in queries.other_roots(generation.root):
        yield [live_part.part for live_part in lists.read(other).parts]
