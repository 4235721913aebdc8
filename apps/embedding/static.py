"""The built-in embedder: a weighted sum of trained word vectors, with numpy alone.

README.md in the folder of the weights defines them and the formula; docs/embedder.md describes the
training.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise
from math import log1p
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.embedding.terms import Numbers, Terms, expand, pairs
from apps.embedding.types import EmbeddingText, Vectors
from apps.embedding.words import LONGEST_WORD, runs, stems, stems_of

# The id contains the version, since vectors of two trainings cannot be compared. The weights are in
# data/<id>.
MODEL_ID = "static-code-256-v2"
DIMENSION = 256
FOLDER = Path(__file__).resolve().parent / "data" / MODEL_ID
GRAM_LENGTH = 4

# Texts whose words are counted together. The uninterrupted steps take a few milliseconds.
BATCH_SIZE = 2_000


@dataclass(frozen=True)
class Weights:
    """The weights: one row for each stem of the vocabulary, then one for each n-gram bucket."""

    rows: dict[str, int]  # row of each stem
    vectors: NDArray[np.int8]  # (rows, DIMENSION), quantised: 17 MB
    text_weight: NDArray[np.float32]  # (rows) for documents, times the scale of the row
    query_weight: NDArray[np.float32]  # (rows) for queries, times the scale of the row
    field_scale: tuple[float, ...]  # of body, path, symbol, signature

    @property
    def buckets(self) -> int:
        """The number of rows for n-grams."""
        return len(self.vectors) - len(self.rows)

    def rows_of(self, stem: str) -> tuple[int, ...]:
        """The row of a stem, or the rows of its n-grams, which share its weight."""
        row = self.rows.get(stem)
        return _ngram_rows(stem) if row is None else (row,)

    def weighted_sum(self, rows: Numbers, weights: NDArray[np.float32]) -> Vectors:
        """The weighted sum of rows, float32 (DIMENSION,)."""
        total: Vectors = weights @ self.vectors[rows].astype(np.float32)
        return total


@cache
def load_weights() -> Weights:
    """Read the weights (about 0.15 s), once per process."""
    words = (FOLDER / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    with np.load(FOLDER / "weights.npz") as arrays:
        scale = arrays["scale"]
        return Weights(
            rows={word: row for row, word in enumerate(words) if word},
            vectors=arrays["vectors"],
            text_weight=arrays["text_weight"] * scale,
            query_weight=arrays["query_weight"] * scale,
            field_scale=tuple(float(value) for value in arrays["field_scale"]),
        )


@lru_cache(maxsize=50_000)
def _ngram_rows(stem: str) -> tuple[int, ...]:
    """The rows of the distinct character 4-grams of a stem that is not in the vocabulary."""
    padded = f"<{stem[:LONGEST_WORD]}>"
    starts = range(max(1, len(padded) - GRAM_LENGTH + 1))
    weights = load_weights()
    return tuple(
        len(weights.rows) + crc32(gram.encode()) % weights.buckets
        for gram in sorted({padded[start : start + GRAM_LENGTH] for start in starts})
    )


def _fields(text: EmbeddingText) -> tuple[str, ...]:
    """The fields of a text in the order of `Weights.field_scale`."""
    return text.body, text.path, text.symbol, text.signature


def _terms_of_sums(
    weights: Weights, texts: Sequence[EmbeddingText]
) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """The terms of the weighted sums of texts: index of the text, row, weight; each of shape (n,),
    sorted by text."""
    terms = Terms.of(map(runs, chain.from_iterable(map(_fields, texts))))
    # Floating-point sums depend on their order. Sorted words make them independent of the batch.
    words = terms.split(stems_of).in_order()
    field, word, frequency = pairs(words.texts, words.numbers)
    text, kind = np.divmod(field, len(weights.field_scale))
    rows_of_words = [weights.rows_of(name) for name in words.names]
    places, counts = expand(np.array(list(map(len, rows_of_words)), np.intp), word)
    rows = np.array(list(chain.from_iterable(rows_of_words)), np.intp)[places]
    # The logarithm damps the term frequency: ten occurrences mean little more than two.
    per_row = np.array(weights.field_scale)[kind] * np.log1p(frequency) / counts
    return (
        np.repeat(text, counts),
        rows,
        np.repeat(per_row, counts).astype(np.float32) * weights.text_weight[rows],
    )


def _unit(total: Vectors) -> Vectors:
    """The vector at unit length; zero for a text without words."""
    length = float(np.sqrt(total @ total))
    return total / np.float32(length) if length else total


def _document_vectors(texts: Sequence[EmbeddingText]) -> Iterator[Vectors]:
    weights = load_weights()
    text, rows, row_weights = _terms_of_sums(weights, texts)
    ends = np.searchsorted(text, np.arange(len(texts) + 1)).tolist()
    for start, end in pairwise(ends):
        yield _unit(weights.weighted_sum(rows[start:end], row_weights[start:end]))


class StaticCodeEmbedder:
    """The built-in Embedder, thread-safe. Vectors have unit length; a text without words has the
    zero vector."""

    id = MODEL_ID
    max_tokens: int | None = None
    cut_texts = 0

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        for start in range(0, len(texts), BATCH_SIZE):
            part = _document_vectors(texts[start : start + BATCH_SIZE])
            for place, vector in enumerate(part, start):
                vectors[place] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        weights = load_weights()
        rows: list[int] = []
        row_weights: list[float] = []
        for stem, frequency in Counter(stems(text)).items():
            rows_of_stem = weights.rows_of(stem)
            rows.extend(rows_of_stem)
            row_weights.extend([log1p(frequency) / len(rows_of_stem)] * len(rows_of_stem))
        at = np.array(rows, np.intp)
        scaled = np.array(row_weights, np.float32) * weights.query_weight[at]
        return _unit(weights.weighted_sum(at, scaled))

    def close(self) -> None:
        """Do nothing: there is no server, and a batch takes milliseconds."""
