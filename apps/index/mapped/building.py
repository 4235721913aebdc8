"""Writes the parts of a new generation: what it has beyond the parts of the one before.

The parts of the former generation stay as they are, except those that are mostly dead, and those
that are not much larger than what is added. These are written again together with the new chunks,
so that their number grows with the logarithm of the number of chunks (as in an LSM tree).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import numpy as np

from apps.core.concurrency.ingest_throttle import ingest_throttle
from apps.core.values.slices import slices
from apps.index.chunk_ids import chunk_id
from apps.index.lexical import LexicalStore
from apps.index.lexical.export import Export, ExportedChunk, ExportedFile
from apps.index.mapped import part as parts
from apps.index.mapped.codes import Codes
from apps.index.mapped.files import writing_errors
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import PART_ROWS, Mask, Part
from apps.index.mapped.spool import CodesSource
from apps.index.mapped.words import Words, WordsBuilder, hashes_of
from apps.index.mapped.writing import NewChunk, NewFile, part_of
from apps.index.types import Check, never_cancelled

# A part with a smaller share of live chunks is written again.
MIN_LIVE = 0.7
# A part is written again with the new chunks if it has at most this many times as many.
GROWTH = 4
# Parts whose words are collected in one pass over the word index: about 300 MB.
PARTS_AT_ONCE = 8


@dataclass(frozen=True)
class Stores:
    """Where the chunks of a root are, and where its copy is."""

    store: UUID
    lexical: LexicalStore
    codes: CodesSource
    folder: Path
    owner: parts.Owner
    check: Check = never_cancelled  # called between the steps


@dataclass(frozen=True)
class _Work:
    """What is to be written."""

    stores: Stores
    files: Mapping[int, ExportedFile]  # by number
    chunks: Sequence[ExportedChunk]
    replaced: Sequence[LiveFiles]  # parts that are written again, for their codes
    described: set[int] = field(default_factory=set)  # files whose definitions are written


def live_parts(groups: Iterable[Sequence[Part]], live: Set[str]) -> list[LiveFiles]:
    """Return all parts with the files that a generation takes from them.

    groups: the parts of one generation of a root, then of those of other roots
    live: documents of its SourceFiles. Each is taken from the first group whose part will stay.
    """
    all_parts: list[LiveFiles] = []
    taken: set[str] = set()
    for group in groups:
        rest = live - taken if taken else live
        of_group = [LiveFiles(part, _mask(part, rest)) for part in group]
        taken |= {
            name for live_part in of_group if _stays(live_part) for name in live_part.documents
        }
        all_parts += of_group
    return all_parts


def build(
    stores: Stores, live: Set[str], chunks: int, before: Sequence[Sequence[Part]]
) -> list[LiveFiles] | None:
    """Write the parts that a generation needs beyond those of `before`, which are the groups of
    `live_parts`. Return all that it has.

    live: documents of its SourceFiles
    chunks: how many chunks with a vector it has

    None if the words or the vectors of some are missing. Raises Unavailable, OSError.
    """
    with stores.lexical.exporting(stores.store) as export:
        if export is None or not chunks:
            return None
        files = [file for file in export.files() if file.source_file in live]
        kept, work = _planned(stores, export, files, before)
        if len(work.chunks) + sum(live_part.rows for live_part in kept) != chunks:
            if not any(before):
                return None
            # A file has other chunks than it had.
            kept, work = _planned(stores, export, files, ())
            if len(work.chunks) != chunks:
                return None
        written = list(_written(work, export))
    return None if None in written else [*kept, *filter(None, written)]


def _planned(
    stores: Stores,
    export: Export,
    files: Sequence[ExportedFile],
    before: Sequence[Sequence[Part]],
) -> tuple[list[LiveFiles], _Work]:
    """The parts that stay, and what is to be written."""
    former = live_parts(before, {file.source_file for file in files})
    kept = [live_part for live_part in former if _stays(live_part)]
    missing = _missing(files, kept)
    new = export.chunks(missing)
    size = len(new)
    for smallest in sorted(kept, key=lambda live_part: len(live_part.part)):
        if size and len(smallest.part) > min(GROWTH * size, PART_ROWS // 2):
            break
        # Without chunks that have a vector, new files may still have definitions.
        if not size and not export.definitions(missing):
            break
        kept.remove(smallest)
        size += smallest.rows
    if size != len(new):
        missing = _missing(files, kept)
        new = export.chunks(missing)
    return kept, _Work(
        stores, missing, new, [live_part for live_part in former if live_part not in kept]
    )


def _stays(each: LiveFiles) -> bool:
    """Whether a part is used as it is. Searches scan all of its rows."""
    return each.rows >= MIN_LIVE * len(each.part)


def _mask(part: Part, live: Set[str]) -> Mask:
    return np.array([file.source_file in live for file in part.files], np.bool_)


def _missing(files: Sequence[ExportedFile], kept: Sequence[LiveFiles]) -> dict[int, ExportedFile]:
    """The files that no kept part has, by number."""
    covered = {name for live_part in kept for name in live_part.documents}
    return {file.number: file for file in files if file.source_file not in covered}


def _written(work: _Work, export: Export) -> Iterator[LiveFiles | None]:
    """Write the chunks in parts. Yields None, and ends, if a vector is missing."""
    encoded = {
        key: (live_part.part, row)
        for live_part in work.replaced
        for rows in [np.flatnonzero(live_part.live[live_part.part.file_of]).tolist()]
        for row, (key, _, _) in zip(rows, live_part.part.chunks(rows), strict=True)
    }
    groups = _groups(work.chunks)
    for some in slices(groups, PARTS_AT_ONCE):
        for chunks, words in zip(some, _words(export, some, work.stores.check), strict=True):
            work.stores.check()
            ids = [
                chunk_id(work.files[chunk.file].source_file, chunk.chunk_index) for chunk in chunks
            ]
            codes = _codes(work, ids, encoded)
            if codes is None:
                yield None
                return
            yield _write(work, export, chunks, (codes, words))


def _groups(chunks: Sequence[ExportedChunk]) -> list[Sequence[ExportedChunk]]:
    """At most PART_ROWS chunks each. The chunks of a file stay together if they are neighbours."""
    groups = []
    start = 0
    while start < len(chunks):
        end = min(start + PART_ROWS, len(chunks))
        while start + 1 < end < len(chunks) and chunks[end].file == chunks[end - 1].file:
            end -= 1
        groups.append(chunks[start:end])
        start = end
    return groups


def _words(export: Export, groups: Sequence[Sequence[ExportedChunk]], check: Check) -> list[Words]:
    """The words of each group of chunks."""
    ends = np.cumsum([0, *map(len, groups)]).tolist()
    builders = [WordsBuilder(*bounds) for bounds in zip(ends, ends[1:], strict=False)]
    for batch in export.hits(np.array([chunk.number for group in groups for chunk in group])):
        check()
        ingest_throttle.yield_to_queries()
        hashes = hashes_of(batch.words)
        for builder in builders:
            builder.add(batch, hashes)
    return [builder.words() for builder in builders]


def _codes(
    work: _Work, ids: Sequence[str], encoded: Mapping[str, tuple[Part, int]]
) -> Codes | None:
    """The codes of some chunks: those that a replaced part has, and the vectors of the others."""
    new: list[int] = []
    former: dict[int, tuple[Part, list[int], list[int]]] = {}  # by identity: rows to, rows from
    for row, key in enumerate(ids):
        if key in encoded:
            part, source = encoded[key]
            _, rows, sources = former.setdefault(id(part), (part, [], []))
            rows.append(row)
            sources.append(source)
        else:
            new.append(row)
    pieces = [part.codes.at(np.array(sources, np.intp)) for part, _, sources in former.values()]
    order = [row for _, rows, _ in former.values() for row in rows] + new
    if new:
        codes = work.stores.codes.codes(work.stores.store, [ids[row] for row in new])
        if codes is None:
            return None
        pieces.append(codes)
    return Codes.joined(pieces).at(np.argsort(order))


def _write(
    work: _Work, export: Export, chunks: Sequence[ExportedChunk], columns: tuple[Codes, Words]
) -> LiveFiles:
    numbers = [chunk.number for chunk in chunks]
    lengths = export.lengths(np.array(numbers))
    files = _files(work, export, chunks)
    part = part_of(work.stores.store, files, (*columns, lengths))
    with writing_errors():  # not those of the word index
        opened = parts.write(work.stores.folder, part, work.stores.owner)
    return LiveFiles(opened, np.ones(len(files), np.bool_))


def _files(work: _Work, export: Export, chunks: Sequence[ExportedChunk]) -> list[NewFile]:
    """The files of these chunks. Those without chunks are with the first ones."""
    facts = [
        NewChunk(described.names, described.symbol, described.signature, span)
        for described, span in export.facts([chunk.number for chunk in chunks])
    ]
    wanted = {chunk.file for chunk in chunks}
    if not work.described:
        wanted |= work.files.keys() - {chunk.file for chunk in work.chunks}
    definitions = export.definitions(wanted - work.described)
    work.described.update(wanted)
    starts = [place for place, chunk in enumerate(chunks) if not _follows(chunk, chunks, place)]
    files = [
        NewFile(
            *work.files[chunks[start].file][1:],
            chunks[start].chunk_index,
            facts[start:end],
            definitions.pop(chunks[start].file, ()),
        )
        for start, end in pairwise([*starts, len(chunks)])
    ]
    return files + [NewFile(*work.files[n][1:], 0, (), lines) for n, lines in definitions.items()]


def _follows(each: ExportedChunk, chunks: Sequence[ExportedChunk], place: int) -> bool:
    """Whether a chunk continues the file of the one before it."""
    before = chunks[place - 1]
    return place > 0 and (each.file, each.chunk_index) == (before.file, before.chunk_index + 1)
