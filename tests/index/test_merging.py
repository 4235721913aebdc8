"""Merged parts have what is live of the parts that they are made from, bit by bit."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.index.lexical.words import runs
from apps.index.mapped import lookups, merging
from apps.index.mapped.codes import QueryCodes
from apps.index.mapped.files import Damaged
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.merging import merged
from apps.index.mapped.nearest import nearest
from apps.index.mapped.part import Part
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from tests.support.mapped import unit_vectors
from tests.support.random_parts import (
    DIMENSION,
    NAMES,
    STORE,
    TEXT_WORDS,
    Source,
    Sources,
    built,
    piece,
    whole,
)

WORDS = (*TEXT_WORDS, "gamma", "ray", "no such word")
IDENTIFIERS = (*TEXT_WORDS, "beta", "gamma", "ray", "no_such")


def arrays(part: Part) -> dict[str, tuple[object, ...]]:
    return {
        f"{group}.{name}": (array.dtype, array.shape, array.tobytes())
        for group in ("codes", "words", "definitions", "facts", "columns")
        for name, array in getattr(part, group)._asdict().items()
    }


@contextmanager
def part_rows(most: int, full: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "PART_ROWS", most)
        patch.setattr(merging, "FULL_ROWS", full)
        yield


def answers(pieces: Sequence[LiveFiles], sources: Sequence[Source]) -> dict[str, object]:
    """What a root of these parts answers to all questions."""
    root = MappedRoot.of(Root(generation=1), pieces)
    ids = [chunk.id for source in sources for chunk in source.chunks]
    query = QueryCodes(unit_vectors(1, DIMENSION, 5)[0])
    rows, _, _ = nearest(root.parts, [part.live for part in root.parts], query, 5)
    all_ids = [text[0] for part in root.parts for text in part.part.chunks(range(len(part)))]
    return {
        "size": (root.chunks, root.live),
        "counts": root.counts(WORDS),
        "hits": [_hits(root, place) for place in range(len(WORDS))],
        "nearest": sorted(all_ids[row] for row in rows.tolist()),
        "facts": lookups.facts(root.parts, ids),
        "names": [lookups.definitions(root.parts, name) for name in NAMES],
        "beginning": [
            lookups.symbols_beginning(root.parts, prefix, 4) for prefix in ("", "g", "A")
        ],
        "identifiers": [lookups.files_with_identifier(root.parts, name) for name in IDENTIFIERS],
        # A file without chunks and definitions is in no part.
        "outlines": [lookups.outline(root.parts, str(source.row.document)) for source in sources],
    }


def with_identifiers(sources: Sequence[Source]) -> list[dict[str, str]]:
    """Document → path of the files whose chunks have an identifier, for each of IDENTIFIERS."""
    return [
        {
            str(source.row.document): source.row.path
            for source in sources
            if any(name in runs(record.chunk.text) for record in source.chunks)
        }
        for name in IDENTIFIERS
    ]


def _hits(root: MappedRoot, place: int) -> list[tuple[str, int, float, float]]:
    """The live hits of a word: chunk, code of its times, and norm; with its idf."""
    found = []
    for hits in root.hits(root.find(WORDS)):
        part = hits.part
        for row, times in zip(
            part.part.words.rows[hits.slices[place]].tolist(),
            part.part.words.times[hits.slices[place]].tolist(),
            strict=True,
        ):
            if part.live is None or part.live[row]:
                score = float(hits.idf[place]), float(part.norms[row])
                found.append((part.part.chunks([row])[0][0], times, *score))
    return sorted(found)


@st.composite
def groups(draw: st.DrawFn, *, most: int = 70) -> tuple[list[list[Source]], list[list[bool]]]:
    """The files of some parts, which may share files, and which of them are live in each part."""
    sources = Sources(Random(draw(st.integers(0, 1 << 32))))
    sizes = st.tuples(st.sampled_from((0, 1, 2, 5, 9, most)), st.sampled_from((0, 1, 3, most)))
    pool = [sources.source(*size) for size in draw(st.lists(sizes, min_size=1, max_size=12))]
    of_parts = st.lists(st.sampled_from(pool), min_size=1, max_size=6, unique_by=id)
    parts = draw(st.lists(of_parts, min_size=1, max_size=5))
    return parts, [[draw(st.booleans()) for _ in part] for part in parts]


def living(parts: Sequence[list[Source]], live: Sequence[list[bool]]) -> list[Source]:
    """The live files, each from the first part where it is live."""
    alive = {
        id(source): source
        for part, mask in zip(parts, live, strict=True)
        for source, is_live in zip(part, mask, strict=True)
        if is_live
    }
    return list(alive.values())


@settings(max_examples=60)
@given(groups())
def test_a_merged_part_is_the_part_of_the_live_files_bit_by_bit(
    drawn: tuple[list[list[Source]], list[list[bool]]],
) -> None:
    parts, live = drawn
    alive = living(parts, live)
    merges = list(merged([piece(*each) for each in zip(parts, live, strict=True)], STORE))
    if not any(source.is_in_parts for source in alive):
        assert merges == []
        return
    (made,), wanted = merges, built(alive)
    assert (made.store, made.runs, made.files) == (STORE, wanted.runs, wanted.files)
    assert arrays(made) == arrays(wanted)


@settings(max_examples=40)
@given(groups(most=12), st.integers(2, 20), st.integers(0, 5))
def test_merged_parts_of_any_size_answer_as_those_of_the_live_files(
    drawn: tuple[list[list[Source]], list[list[bool]]], most: int, slack: int
) -> None:
    parts, live = drawn
    alive = living(parts, live)
    pieces = [piece(*each) for each in zip(parts, live, strict=True)]
    full = max(1, most - slack)
    with part_rows(most, full):
        small = list(merged(pieces, STORE))
        assert all(full <= len(part) <= most for part in small[:-1])
        assert all(len(part) <= most for part in small)
        if not any(source.is_in_parts for source in alive):
            assert small == []
            return
        again = merged([whole(part) for part in small], STORE)
        # Of a document that is cut in one piece, and whole in another, each chunk is taken once.
        twice = merged([*(whole(part) for part in small[1:2]), *pieces], STORE)
        wanted = answers([whole(built(alive))], alive)
        assert wanted["identifiers"] == with_identifiers(alive)
        for parts_of_alive in (small, list(again), list(twice)):
            assert answers([whole(part) for part in parts_of_alive], alive) == wanted


def test_a_document_is_cut_only_if_it_has_more_chunks_than_a_part_may_lack() -> None:
    sources = Sources(Random(1))
    all_sources = [sources.source(chunks, 1) for chunks in (16, 6, 6, 90, 3)]
    part = whole(built(all_sources))
    with part_rows(30, 20):
        parts = list(merged([part], STORE))
    cut = [
        file.path
        for before, after in pairwise(parts)
        for file in after.files
        if file.source_file in before.places
    ]
    assert set(cut) == {all_sources[3].row.path}
    documents = [str(source.row.document) for source in all_sources]
    assert [document for document in documents if document in parts[0].places] == documents[:3]
    # The middle of the long document comes first, then its beginning and its end.
    twice = list(merged([whole(parts[2]), part], STORE))
    wanted = answers([part], all_sources)
    assert wanted["identifiers"] == with_identifiers(all_sources)
    assert answers([whole(each) for each in twice], all_sources) == wanted


@pytest.mark.parametrize("group", ["facts", "definitions"])
def test_a_part_that_lacks_rows_is_not_merged(group: str) -> None:
    part = built([Sources(Random(1)).source(100, 100)])
    rows = getattr(part, group)
    harmed = replace(part, **{group: rows._replace(ends=rows.ends[:-1])})
    with pytest.raises(Damaged):
        list(merged([whole(harmed)], STORE))
