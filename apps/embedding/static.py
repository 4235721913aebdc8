"""The built-in embedder: trained word vectors, summed. numpy and nothing else.

What the weights are and how a vector comes of them is told in the README.md beside them; how they
are made, in docs/embedder.md.
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

from apps.core.ingest_throttle import ingest_throttle
from apps.embedding.terms import Numbers, Terms, expand
from apps.embedding.types import EmbeddingText, Vectors
from apps.embedding.words import LONGEST_WORD, runs, stems, stems_of

# The id carries the version: vectors of two trainings do not compare. Weights are in data/<id>.
MODEL_ID = "static-code-256-v2"
DIMENSION = 256
FOLDER = Path(__file__).resolve().parent / "data" / MODEL_ID
GRAM_LENGTH = 4

# Texts whose words are counted together: what is done for all of them takes a few milliseconds.
AT_ONCE = 500


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

    def rows_of(self, stem: str) -> tuple[int, ...]:
        """The rows that share what a stem says: its own, or those of its pieces."""
        row = self.rows.get(stem)
        return _pieces(stem) if row is None else (row,)

    def total(self, rows: Numbers, amounts: NDArray[np.float32]) -> Vectors:
        """The sum of some rows, so much of each."""
        total: Vectors = amounts @ self.vectors[rows].astype(np.float32)
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
def _pieces(stem: str) -> tuple[int, ...]:
    """The rows of an unknown stem's distinct character 4-grams."""
    marked = f"<{stem[:LONGEST_WORD]}>"
    starts = range(max(1, len(marked) - GRAM_LENGTH + 1))
    weights = load_weights()
    return tuple(
        len(weights.rows) + crc32(gram.encode()) % weights.buckets
        for gram in sorted({marked[start : start + GRAM_LENGTH] for start in starts})
    )


def _fields(text: EmbeddingText) -> tuple[str, ...]:
    """The texts of a chunk in the order of `Weights.field_scale`."""
    return text.body, text.path, text.symbol, text.signature


def _summands(
    weights: Weights, texts: Sequence[EmbeddingText]
) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """What the vectors of some texts add up: number of the text, row, and how much of it."""
    found = Terms.of(map(runs, chain.from_iterable(map(_fields, texts))))
    # In an order of their own, the words of a text give the same sum in whatever batch it comes.
    words = found.split(stems_of).in_order()
    field, word, times = words.by_text()
    text, kind = np.divmod(field, len(weights.field_scale))
    lists = [weights.rows_of(name) for name in words.names]
    places, shares = expand(np.array(list(map(len, lists)), np.intp), word)
    rows = np.array(list(chain.from_iterable(lists)), np.intp)[places]
    # By the logarithm: a word said ten times says little more than one said twice.
    amounts = np.array(weights.field_scale)[kind] * np.log1p(times) / shares
    return (
        np.repeat(text, shares),
        rows,
        np.repeat(amounts, shares).astype(np.float32) * weights.text_weight[rows],
    )


def _unit(total: Vectors) -> Vectors:
    """Of unit length, or zero for a text without a word."""
    length = float(np.sqrt(total @ total))
    return total / np.float32(length) if length else total


def _document_vectors(texts: Sequence[EmbeddingText]) -> Iterator[Vectors]:
    weights = load_weights()
    text, rows, amounts = _summands(weights, texts)
    ends = np.searchsorted(text, np.arange(len(texts) + 1)).tolist()
    for start, end in pairwise(ends):
        ingest_throttle.yield_to_queries()
        yield _unit(weights.total(rows[start:end], amounts[start:end]))


class StaticCodeEmbedder:
    """Vectors of code and of questions about it; no limit of tokens, safe from any thread."""

    id = MODEL_ID
    max_tokens: int | None = None

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        for start in range(0, len(texts), AT_ONCE):
            part = _document_vectors(texts[start : start + AT_ONCE])
            for place, vector in enumerate(part, start):
                vectors[place] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        weights = load_weights()
        rows: list[int] = []
        amounts: list[float] = []
        for stem, times in Counter(stems(text)).items():
            shared = weights.rows_of(stem)
            rows.extend(shared)
            amounts.extend([log1p(times) / len(shared)] * len(shared))
        at = np.array(rows, np.intp)
        return _unit(weights.total(at, np.array(amounts, np.float32) * weights.query_weight[at]))

    def close(self) -> None:
        """Nothing is held open; a pass over one batch takes milliseconds."""
