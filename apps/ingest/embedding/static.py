"""The built-in embedder: trained word vectors, summed. numpy and nothing else.

What the weights are and how a vector comes of them is told in the README.md beside them; how they
are made, in docs/embedder.md.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.ingest.courtesy import courtesy
from apps.ingest.embedding.words import LONGEST_WORD, stems
from apps.ingest.types import EmbeddingText, Vectors

# The id carries the version: vectors of two trainings do not compare. Weights are in data/<id>.
MODEL_ID = "static-code-256-v2"
DIMENSION = 256
FOLDER = Path(__file__).resolve().parent.parent / "data" / MODEL_ID
GRAM_LENGTH = 4

# log(1 + count): a word said ten times says little more than one said twice.
_LOG = [math.log1p(count) for count in range(512)]


@dataclass(frozen=True)
class Weights:
    """The tables, as they are on disk: int8 vectors stay int8 (17 MB), and each row's float scale
    is folded into its weight as a word of a document or of a query."""

    rows: dict[str, int]
    vectors: NDArray[np.int8]
    text_weight: NDArray[np.float32]
    query_weight: NDArray[np.float32]
    field_scale: tuple[float, ...]

    @property
    def buckets(self) -> int:
        """Rows after the vocabulary's, for the pieces of words that are not in it."""
        return len(self.vectors) - len(self.rows)


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
def _grams(stem: str) -> tuple[int, ...]:
    """Bucket numbers of an unknown stem's distinct character 4-grams, counted from 0."""
    marked = f"<{stem[:LONGEST_WORD]}>"
    starts = range(max(1, len(marked) - GRAM_LENGTH + 1))
    buckets = load_weights().buckets
    return tuple(
        crc32(gram.encode()) % buckets
        for gram in sorted({marked[start : start + GRAM_LENGTH] for start in starts})
    )


class _Terms:
    """The rows that a text adds up, and how much of each."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.rows: list[int] = []
        self.amounts: list[float] = []

    def add(self, text: str, scale: float) -> None:
        if not text:
            return
        known, vocabulary = self._weights.rows, len(self._weights.rows)
        for stem, count in Counter(stems(text)).items():
            amount = scale * (_LOG[count] if count < len(_LOG) else math.log1p(count))
            row = known.get(stem)
            if row is not None:
                self.rows.append(row)
                self.amounts.append(amount)
                continue
            grams = _grams(stem)
            self.rows.extend(vocabulary + gram for gram in grams)
            self.amounts.extend([amount / len(grams)] * len(grams))

    def vector(self, word_weight: NDArray[np.float32]) -> Vectors:
        """Unit length, or zero for a text without a word."""
        if not self.rows:
            return np.zeros(DIMENSION, np.float32)
        rows = np.array(self.rows)
        amounts = np.array(self.amounts, np.float32) * word_weight[rows]
        total: Vectors = amounts @ self._weights.vectors[rows].astype(np.float32)
        length = float(np.sqrt(total @ total))
        return total / np.float32(length) if length else total


class StaticCodeEmbedder:
    """Vectors of code and of questions about it; no limit of tokens, safe from any thread."""

    id = MODEL_ID
    max_tokens: int | None = None

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        weights = load_weights()
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for place, text in enumerate(texts):
            courtesy.give_way()
            terms = _Terms(weights)
            fields = (text.body, text.path, text.symbol, text.signature)
            for value, scale in zip(fields, weights.field_scale, strict=True):
                terms.add(value, scale)
            vectors[place] = terms.vector(weights.text_weight)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        weights = load_weights()
        terms = _Terms(weights)
        terms.add(text, 1.0)
        return terms.vector(weights.query_weight)

    def close(self) -> None:
        """Nothing is held open; a pass over one batch takes milliseconds."""
