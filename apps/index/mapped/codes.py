"""Vectors of unit length as codes of 8, 16 and 1 bit a dimension.

A vector is scale · (256 · high + low) with two signed bytes a dimension. `high` alone is a vector
of 8 bits, which SIMD instructions compare quickly. With `low` the error of a distance is below
3e-5.
`signs` are the signs after a rotation that spreads the variance over all dimensions evenly (a
randomised Hadamard transform): their Hamming distance estimates the angle (Charikar, "Similarity
Estimation Techniques from Rounding Algorithms", 2002).
"""

from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import simsimd
from numpy.typing import NDArray

from apps.embedding.types import Vectors

Bytes = NDArray[np.int8]
Signs = NDArray[np.uint8]
Rows = NDArray[np.intp]

# The largest code: 127 in the high byte, and the low byte is signed.
_MAX_CODE = 127 * 256
# Rows that are encoded together: 8 MB of float32 at 256 dimensions.
_BLOCK = 8_192


class Codes(NamedTuple):
    """n vectors of d dimensions. b is d rounded up to a power of 2, at least 8, in bits."""

    high: Bytes  # int8 (n, d)
    low: Bytes  # int8 (n, d)
    scales: NDArray[np.float32]  # (n,), 0 for a row without a vector
    signs: Signs  # uint8 (n, b / 8)

    @classmethod
    def of(cls, units: Vectors) -> "Codes":
        """Encode vectors: float32 (n, d), of unit length."""
        blocks = [_encoded(units[at : at + _BLOCK]) for at in range(0, len(units), _BLOCK)]
        return cls.joined(blocks or [_encoded(units)])

    @classmethod
    def joined(cls, parts: "list[Codes]") -> "Codes":
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @property
    def dimension(self) -> int:
        return int(self.high.shape[1])

    def at(self, rows: Rows) -> "Codes":
        return Codes(self.high[rows], self.low[rows], self.scales[rows], self.signs[rows])

    def vectors(self, rows: Rows) -> Vectors:
        """The vectors of some rows that have one: float32 (n, d), of unit length."""
        vectors = self._values(rows)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def estimates(self, query: "QueryCodes", rows: Rows | None = None) -> NDArray[np.float32]:
        """The cosines of all rows, or of some, by the high bytes. float32 (n,)."""
        high, scales = self.high, self.scales
        if rows is not None:
            # In a third of the time of `self.high[rows]`.
            high, scales = np.take(high, rows, axis=0), scales[rows]
        if not len(high):
            return np.zeros(0, np.float32)
        products = simsimd.cdist(query.high, high, "dot", dtype="int8", out_dtype="float32")
        estimates: NDArray[np.float32] = np.asarray(products)[0]
        estimates *= scales
        estimates *= np.float32(256 * 256 * query.scale)
        return estimates

    def cosines(self, query: "QueryCodes", rows: Rows) -> NDArray[np.float32]:
        """The cosines of some rows by both bytes, nan for those without a vector: float32
        (len(rows),)."""
        scales = self.scales[rows]
        cosines: NDArray[np.float32] = (self._values(rows) @ query.unit) * scales
        cosines[scales == 0] = np.nan
        return cosines

    def differing_signs(self, query: "QueryCodes", rows: Rows | None = None) -> NDArray[np.uint16]:
        """The Hamming distance of all rows, or of some: uint16 (n,)."""
        signs = self.signs if rows is None else self.signs[rows]
        if not len(signs):
            return np.zeros(0, np.uint16)
        # With `out`, SimSIMD 6.5 returns None without counting the reference: Python then aborts.
        kind: Any = "uint16"  # missing in its stubs
        counts = simsimd.cdist(query.signs, signs, "hamming", dtype="bin8", out_dtype=kind)
        differing: NDArray[np.uint16] = np.asarray(counts)[0]
        return differing

    def weighted_differences(self, query: "QueryCodes", rows: Rows) -> NDArray[np.uint16]:
        """The Hamming distance of some rows, in which a sign counts as much as the size of the
        query's value in its dimension, 0 to 7: uint16 (len(rows),)."""
        signs = np.ascontiguousarray(np.take(_words(self.signs), rows, axis=0).T)
        signs ^= _words(query.signs).T
        ones, twos, fours = (
            np.bitwise_count(signs & level[:, None]).sum(axis=0, dtype=np.uint16)
            for level in query.levels
        )
        differences: NDArray[np.uint16] = ones + 2 * twos + 4 * fours
        return differences

    def _values(self, rows: Rows) -> Vectors:
        """Both bytes of some rows, without their scales: float32 (n, d)."""
        values: Vectors = self.high[rows].astype(np.float32)
        values *= 256
        values += self.low[rows]
        return values


class QueryCodes:
    """The vector of a query, float32 (d,) of unit length, as the codes are compared with it."""

    def __init__(self, unit: Vectors) -> None:
        self.unit = np.ascontiguousarray(unit, np.float32)
        self.scale = float(np.abs(self.unit).max()) / _MAX_CODE
        self.high = np.rint(self.unit / (256 * self.scale)).astype(np.int8).reshape(1, -1)

    @cached_property
    def rotated(self) -> Vectors:
        """float32 (1, b)."""
        return _rotated(self.unit.reshape(1, -1))

    @cached_property
    def signs(self) -> Signs:
        return np.packbits(self.rotated > 0, axis=1)

    @cached_property
    def levels(self) -> NDArray[Any]:
        """The size of each rotated value as a number of 3 bits, lowest bit first: (3, words)."""
        sizes = np.abs(self.rotated)
        levels = np.rint(sizes * (7 / sizes.max())).astype(np.uint8)
        return _words(np.concatenate([np.packbits(levels >> bit & 1, axis=1) for bit in range(3)]))

    def margin(self, scale: float) -> float:
        """How far an estimate is from the cosine at most, in practice: six standard deviations of
        the rounding error, for rows of this scale."""
        return float(6 * 256 * np.hypot(self.scale, scale) / np.sqrt(12))


def _encoded(units: Vectors) -> Codes:
    scales = np.abs(units).max(axis=1, initial=0) / np.float32(_MAX_CODE)
    codes = np.rint(units / np.where(scales == 0, 1, scales)[:, None]).astype(np.int16)
    high = (codes + 128) >> 8
    low = codes - (high << 8)
    signs = np.packbits(_rotated(units) > 0, axis=1)
    return Codes(high.astype(np.int8), low.astype(np.int8), scales, signs)


def _rotated(units: Vectors) -> Vectors:
    rotated: Vectors = units @ _rotation(units.shape[1])
    return rotated


def _words(signs: Signs) -> NDArray[Any]:
    """The same bits in as few numbers as possible for each row."""
    return signs.view(np.uint8 if signs.shape[1] % 8 else np.uint64)


@lru_cache(maxsize=4)
def _rotation(dimension: int) -> Vectors:
    """A randomised Hadamard transform: float32 (dimension, b)."""
    size = max(8, 1 << (dimension - 1).bit_length())
    hadamard = np.ones((1, 1), np.float32)
    while len(hadamard) < size:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    # Random signs that are the same everywhere: the files have them.
    digest = b"".join(sha256(b"codeinfo %d" % i).digest() for i in range(-(-size // 256)))
    flips = np.unpackbits(np.frombuffer(digest, np.uint8))[:size].astype(np.float32) * 2 - 1
    return np.ascontiguousarray((flips[:, None] * hadamard)[:dimension])
