"""Compares the live rows of a root with the parts that it lists, and with the texts."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from apps.core.values.slices import slices
from apps.index import queries
from apps.index.mapped import files, lists, part
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import Part
from apps.index.models import Root
from apps.index.spans import Span
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.ingest.verification.rows import FileRow
from apps.ingest.verification.types import RootComparison

# Files whose texts are read together.
FILES_AT_ONCE = 64


def compare(root: Root, live: Sequence[FileRow], found: RootComparison, check: Check) -> None:
    """Compare all live rows of a root. Raises Unavailable if the texts are unavailable."""
    rows = [row for row in live if not row.skip_reason]
    parts = _readable(root, found, check)
    indexed, vectors = _compare_chunks(parts, rows, found, check)
    found.chunks = sum(row.chunks for row in rows)
    found.indexed = indexed.total()
    # What an unreadable part has is not known.
    if len(parts) == len(root.parts):
        incomplete = []
        for row in rows:
            if (number := indexed[str(row.document)]) != row.chunks:
                incomplete.append(f"{row.path} ({number} of {row.chunks})")
            elif (number := vectors[str(row.document)]) != row.embedded:
                incomplete.append(f"{row.path} ({number} of {row.embedded} vectors)")
        detail = "files of which the index has too few or too many chunks"
        found.add_files("index_differs", detail, incomplete)
    _compare_texts(rows, found, check)
    _compare_dimensions(root, parts, found)


def _readable(root: Root, found: RootComparison, check: Check) -> list[LiveFiles]:
    """The parts of a root that agree with their checksums; the others are reported."""
    parts, lost = lists.read(root)
    readable = []
    for reason in lost:
        found.add("index_unreadable", reason)
    for one in parts:
        try:
            files.verify(part.path_of(lists.folder(), one.part.name), check)
            readable.append(one)
        except (files.Damaged, OSError) as error:
            found.add("index_unreadable", str(error))
    return readable


def _compare_chunks(
    parts: Iterable[LiveFiles], rows: Iterable[FileRow], found: RootComparison, check: Check
) -> tuple[Counter[str], Counter[str]]:
    """Compare the live files of parts with the rows. Return document → number of its chunks, and
    → number of those with a vector."""
    row_of = {str(row.document): row for row in rows}
    indexed, vectors = Counter[str](), Counter[str]()
    differing, unnamed = [], []
    for one in parts:
        for place in np.flatnonzero(one.live).tolist():
            check()
            file = one.part.files[place]
            indexed[file.source_file] += one.part.starts[place + 1] - one.part.starts[place]
            vectors[file.source_file] += one.part.vectors_of_files[place]
            row = row_of.get(file.source_file)
            if row is None:
                unnamed.append(file.path)
            elif not _is_of(one.part, place, row):
                differing.append(file.path)
    found.add_files("index_differs", "files in the index that no row names", unnamed)
    detail = "files that the index has with other facts"
    found.add_files("index_differs", detail, differing)
    return indexed, vectors


def _is_of(one: Part, place: int, row: FileRow) -> bool:
    """Whether a file of a part, and its chunks, are as a row says."""
    file, columns = one.files[place], one.columns
    if (file.path, file.language, columns.hashes[place].tobytes().hex()) != (
        row.path,
        row.language,
        row.sha256,
    ):
        return False
    spans = one.spans(slice(one.starts[place], one.starts[place + 1]))
    first = columns.first.item(place)
    expected = row.read_spans()[first : first + len(spans)]
    return [Span(*span) for span in spans.tolist()] == expected


def _compare_texts(rows: Sequence[FileRow], found: RootComparison, check: Check) -> None:
    lost = []
    for some in slices([row for row in rows if row.spans], FILES_AT_ONCE):
        check()
        texts = get_texts().read({row.sha256 for row in some})
        for row in some:
            end = max((span.offset + span.length for span in row.read_spans()), default=0)
            if len(texts.get(row.sha256, "")) < end:
                lost.append(row.path)
    found.add_files("texts_missing", "files without their text", lost)


def _compare_dimensions(root: Root, parts: Iterable[LiveFiles], found: RootComparison) -> None:
    lock = queries.index_lock()
    dimensions = {one.part.codes.dimension for one in parts if one.rows}
    if lock and root.model == lock.model and dimensions - {lock.dimension}:
        lengths = ", ".join(map(str, sorted(dimensions)))
        found.add("lock", f"{lengths} dimensions, the index is locked to {lock.dimension}")
