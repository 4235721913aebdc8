"""What look-ups read of the live files of some parts: definitions by name and by file, files by
identifier, and facts of chunks. Raises files.Damaged."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from apps.index.lexical.words import is_identifier, words_of
from apps.index.mapped.definitions import Numbers, folded
from apps.index.mapped.part import LivePart, PartFile
from apps.index.mapped.words import hashes_of, identifier
from apps.index.types import ChunkFacts, StoredSymbol

# The least likeness of names that are spelled alike, from 0 to 1, and those that are compared.
_ALIKE, _MAX_ALIKE = 0.75, 50

Parts = Sequence[LivePart]


class _Place(NamedTuple):
    """Where a definition is. Places of one name are listed in this order."""

    path: str
    part: int  # index
    number: int  # in the part
    file: int  # in the part


def definitions(parts: Parts, name: str) -> list[StoredSymbol]:
    """The definitions of a name; if there are none, those of the name in other case."""
    symbols = list(_symbols(parts, _named(parts, name)))
    return [symbol for symbol in symbols if symbol.name == name] or symbols


def lines_defining(parts: Parts, name: str, documents: Collection[str]) -> set[tuple[str, int]]:
    """Document and line of the definitions of a name in these documents: of a name with many, most
    are not read."""
    places = [
        place
        for place in _named(parts, name)
        if parts[place.part].part.files[place.file].source_file in documents
    ]
    symbols = _symbols(parts, places)
    return {(symbol.source_file, symbol.start_line) for symbol in symbols if symbol.name == name}


def definitions_of_names(
    parts: Parts, names: Iterable[str], most: int
) -> dict[str, list[StoredSymbol]]:
    """Name → its definitions, without names that have none, or more than `most` in any case."""
    names = list(dict.fromkeys(names))
    of_parts = [part.part.definitions.named_each(names, part.part.prefixes) for part in parts]
    places = {}
    for name, *numbers in zip(names, *of_parts, strict=True):
        if any(map(len, numbers)):  # as of few names in a text
            of_name = _live(parts, enumerate(numbers))
            if 0 < len(of_name) <= most:
                places[name] = of_name
    symbols = _symbols(parts, chain.from_iterable(places.values()))
    return {
        name: [symbol for symbol in islice(symbols, len(of_name)) if symbol.name == name]
        for name, of_name in places.items()
    }


def symbols_beginning(parts: Parts, prefix: str, n: int) -> list[StoredSymbol]:
    """n symbols whose name begins with a prefix, in any case, by name."""
    names = heapq.merge(*(_names(part, live_part, prefix) for part, live_part in enumerate(parts)))
    places: list[_Place] = []
    for _, of_name in groupby(names, key=itemgetter(0)):
        if len(places) >= n:
            break
        places += _live(parts, ((part, numbers) for _, part, numbers in of_name))
    return list(_symbols(parts, places[:n]))


def symbols_alike(parts: Parts, name: str, n: int) -> list[StoredSymbol]:
    """As MappedRoot.symbols_alike."""
    of_names: dict[str, list[tuple[int, Numbers]]] = defaultdict(list)
    for part, live_part in enumerate(parts):
        for known, numbers in live_part.part.definitions.alike(name, _MAX_ALIKE):
            of_names[known.decode("utf-8", "surrogatepass")].append((part, numbers))
    wanted = folded(name).decode("utf-8", "surrogatepass")
    best = get_close_matches(wanted, of_names, n, _ALIKE)
    places = [place for known in best for place in _live(parts, of_names[known])]
    return list(_symbols(parts, places[:n]))


def outline(
    parts: Parts, document: UUID | str, lines: tuple[int, int] | None = None
) -> list[StoredSymbol]:
    """The definitions in a file (`SourceFile.document`), by line. lines: the first and the last on
    which one may begin."""
    return [
        _symbol(row, live.part.files[file])
        for live in parts
        for file in live.part.places.get(str(document), ())
        if live.files[file]
        for row in live.part.definitions.outline(file, lines)
    ]


def files_with_identifier(parts: Parts, name: str) -> dict[str, str]:
    """Document → path of the files whose text has an identifier, by path. The match is exact:
    whole, and in its case, but for names that are no identifiers, such as `t` and `404`."""
    whole = words_of[name]
    is_word = bool(whole) and not is_identifier(name)  # `t`, `404`
    hashes = hashes_of([whole[-1] if is_word else identifier(name)])
    found: dict[str, str] = {}
    for part in parts:
        words = part.part.words if is_word else part.part.identifiers
        (hits,) = words.find(hashes)
        places = np.unique(part.part.file_of[words.rows[hits]])
        files = (part.part.files[place] for place in places[part.files[places]].tolist())
        found |= {file.source_file: file.path for file in files}
    return dict(sorted(found.items(), key=itemgetter(1)))


def rows_defining(parts: Parts, name: str) -> Iterator[tuple[int, int, StoredSymbol]]:
    """Part and row of the chunk in which each definition of exactly this name begins, and the
    definition."""
    hashes = hashes_of([identifier(name)])
    for number, part in enumerate(parts):
        # Much faster than its name among the definitions.
        (hits,) = part.part.identifiers.find(hashes)
        if hits.start == hits.stop:
            continue
        places = _live(parts, [(number, part.part.definitions.named(name))])
        for place, symbol in zip(places, _symbols(parts, places), strict=True):
            row = _row_at(part, place.file, symbol.start_line) if symbol.name == name else None
            if row is not None:
                yield number, row, symbol


def rows_with_identifier(parts: Parts, name: str) -> Iterator[tuple[int, int]]:
    """Part and row of the chunks with an identifier, in the files whose text has it exactly. One of
    several parts may differ in case; of one without parts, the first of each file."""
    whole = words_of[name]
    hashes, hashes_of_whole = hashes_of([identifier(name)]), hashes_of(whole[-1:])
    for number, part in enumerate(parts):
        words, identifiers = part.part.words, part.part.identifiers
        (hits,) = identifiers.find(hashes)
        first = rows = identifiers.rows[hits]
        if not len(first):
            continue
        if len(whole) > 1:  # the word of all its parts, in any case: at each chunk
            (hits,) = words.find(hashes_of_whole)
            with_whole = words.rows[hits]
            in_files = np.isin(part.part.file_of[with_whole], part.part.file_of[first])
            rows = np.union1d(first, with_whole[in_files])
        for row in rows.tolist():
            if part.live is None or part.live[row]:
                yield number, row


def _row_at(part: LivePart, file: int, line: int) -> int | None:
    """The row of the first chunk of a file that has a line."""
    first, last = part.part.starts[file : file + 2]
    spans = part.part.spans(slice(first, last))
    (at,) = np.nonzero((spans[:, 0] <= line) & (line <= spans[:, 1]))
    return first + int(at[0]) if len(at) else None


def facts(parts: Parts, ids: Iterable[str]) -> dict[str, ChunkFacts]:
    """Chunk id → facts. Unknown ids are left out."""
    parsed = [(chunk_id, *chunk_id.rpartition(":")[::2]) for chunk_id in ids]
    wanted = [
        (chunk_id, document, int(index))
        for chunk_id, document, index in parsed
        if index.isdecimal()
    ]
    known: dict[str, ChunkFacts] = {}
    for part in parts:
        documents = part.part.places
        rows = {
            row: chunk_id
            for chunk_id, document, index in wanted
            if document in documents  # most are in other parts
            and (row := part.part.row_of(document, index, part.files)) is not None
        }
        known |= {rows[row]: stored for row, stored in _facts(part, list(rows))}
    return known


def _names(part: int, each: LivePart, prefix: str) -> Iterator[tuple[bytes, int, Numbers]]:
    for name, numbers in each.part.definitions.beginning(prefix):
        yield name, part, numbers


def _named(parts: Parts, name: str) -> list[_Place]:
    """The definitions of a name in any case."""
    return _live(parts, enumerate(part.part.definitions.named(name) for part in parts))


def _live(parts: Parts, of_parts: Iterable[tuple[int, Numbers]]) -> list[_Place]:
    """The definitions of a name that are in live files, by path and line."""
    places = []
    for part, numbers in of_parts:
        if not len(numbers):
            continue
        live_part = parts[part]
        in_files = live_part.part.definitions.files_of(numbers)
        live = live_part.files[in_files]
        for number, file in zip(numbers[live].tolist(), in_files[live].tolist(), strict=True):
            places.append(_Place(live_part.part.files[file].path, part, number, file))
    return sorted(places)


def _symbols(parts: Parts, places: Iterable[_Place]) -> Iterator[StoredSymbol]:
    places = list(places)
    numbers: dict[int, list[int]] = {}
    for place in places:
        numbers.setdefault(place.part, []).append(place.number)
    rows = {
        part: iter(parts[part].part.definitions.read(of_part)) for part, of_part in numbers.items()
    }
    for place in places:
        yield _symbol(next(rows[place.part]), parts[place.part].part.files[place.file])


def _symbol(row: Sequence[Any], file: PartFile) -> StoredSymbol:
    return StoredSymbol(
        *row, source_file=file.source_file, file_path=file.path, language=file.language
    )


def _facts(each: LivePart, rows: Sequence[int]) -> Iterator[tuple[int, ChunkFacts]]:
    part = each.part
    spans, files = part.spans(rows).tolist(), part.file_of[rows].tolist()
    chunks = zip(rows, part.chunks(rows), part.facts.read(rows), spans, files, strict=True)
    for row, (chunk_id, path, names), (symbol, signature), span, place in chunks:
        start_line, end_line, offset, length = span
        file = part.files[place]
        yield (
            row,
            ChunkFacts(
                id=chunk_id,
                source_file=file.source_file,
                path=path,
                chunk_index=int(chunk_id.rpartition(":")[2]),
                start_line=start_line,
                end_line=end_line,
                symbol=symbol,
                names=tuple(names.split()),
                signature=signature,
                language=file.language,
                sha256=part.columns.hashes[place].tobytes().hex(),
                offset=offset,
                length=length,
            ),
        )
