"""Where the chunks of a file are is stored in a few bytes, and read back."""

import random
import zlib
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.code.values import Chunk
from apps.index.spans import Span, pack, span_of, unpack

MOST = 2**31 - 1


@st.composite
def chunks(draw: st.DrawFn) -> list[Chunk]:
    """Chunks in any order, also overlapping ones."""
    return [
        Chunk(
            "x" * draw(st.integers(0, 3_000)),
            draw(st.integers(1, 10_000_000)),
            draw(st.integers(1, 10_000_000)),
            offset=draw(st.integers(0, 100_000_000)),
        )
        for _ in range(draw(st.integers(0, 50)))
    ]


@given(chunks())
def test_spans_are_read_back_as_they_were(given_chunks: list[Chunk]) -> None:
    expected = [
        Span(each.start_line, each.end_line, each.offset, len(each.text)) for each in given_chunks
    ]
    packed = pack(given_chunks)
    assert unpack(packed) == expected == list(map(span_of, given_chunks))
    # As a database returns them.
    assert unpack(memoryview(packed)) == expected
    assert bool(packed) is bool(given_chunks)


def test_the_largest_file_has_a_place() -> None:
    far = [Chunk("x", 1, 1), Chunk("y", MOST, MOST, offset=MOST), Chunk("z", 1, 2, offset=3)]
    assert unpack(pack(far)) == [Span(1, 1, 0, 1), Span(MOST, MOST, MOST, 1), Span(1, 2, 3, 1)]


def test_a_chunk_takes_a_few_bytes() -> None:
    dice = random.Random(7)
    made, line, offset = [], 1, 0
    for _ in range(1_000):
        lines, chars = dice.randint(5, 60), dice.randint(200, 1_500)
        made.append(Chunk("x" * chars, line, line + lines - 1, offset=offset))
        line, offset = line + lines, offset + chars + 1
    assert len(pack(made)) < 6 * len(made)


@pytest.mark.parametrize(
    "damaged",
    [
        b"no spans at all",
        b"\0",
        b"\1",
        pack([Chunk("x", 1, 1)])[:-3],
        zlib.compress(b"12345"),
        zlib.compress(b"\0" * 20),
    ],
)
def test_damaged_spans_are_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(damaged)


def test_a_flipped_byte_is_noticed() -> None:
    packed = pack([Chunk("x" * n, n, n, offset=n * n) for n in range(1, 40)])
    expected = [Span(n, n, n * n, n) for n in range(1, 40)]
    for at, flip in product(range(len(packed)), range(1, 256)):
        damaged = bytearray(packed)
        damaged[at] ^= flip
        with suppress(ValueError):
            # A flip in the header of the stream may change nothing.
            assert unpack(bytes(damaged)) == expected, (at, flip)


@pytest.mark.parametrize("wbits", [zlib.MAX_WBITS, 16 + zlib.MAX_WBITS])
def test_spans_of_an_earlier_checkout_are_read(wbits: int) -> None:
    columns = np.array([[1, 2], [2, 1], [0, 10], [9, -1]], "<i4").tobytes()
    spans = [Span(1, 2, 0, 9), Span(3, 3, 10, 8)]
    assert unpack(zlib.compress(columns, wbits=wbits)) == spans
