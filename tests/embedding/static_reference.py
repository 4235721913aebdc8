"""A slow reference implementation of the built-in embedder, as its model card defines it."""

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from apps.embedding.static import FOLDER
from apps.embedding.words import stems

LONGEST = 24


@cache
def files() -> tuple[dict[str, int], dict[str, NDArray[np.float64]]]:
    words = (FOLDER / "vocabulary.txt").read_text(encoding="utf-8").split()
    with np.load(FOLDER / "weights.npz") as arrays:
        tables = {name: arrays[name].astype(np.float64) for name in arrays.files}
    return {word: row for row, word in enumerate(words)}, tables


def rows(word: str) -> list[int]:
    numbers, tables = files()
    if word in numbers:
        return [numbers[word]]
    marked = f"<{word[:LONGEST]}>"
    grams = {marked[at : at + 4] for at in range(max(1, len(marked) - 3))}
    buckets = len(tables["vectors"]) - len(numbers)
    return [len(numbers) + zlib.crc32(gram.encode()) % buckets for gram in grams]


def vector(fields: Sequence[str], scales: Sequence[float], weight: str) -> NDArray[np.float64]:
    _, tables = files()
    total = np.zeros(tables["vectors"].shape[1])
    for text, scale in zip(fields, scales, strict=True):
        for word, count in Counter(stems(text)).items():
            word_rows = rows(word)
            for row in word_rows:
                amount = scale * math.log(1 + count) / len(word_rows) * tables[weight][row]
                total += amount * tables["scale"][row] * tables["vectors"][row]
    length = float(np.linalg.norm(total))
    return total / length if length else total


def document(fields: Sequence[str]) -> NDArray[np.float64]:
    """Body, path, symbol, signature."""
    return vector(fields, files()[1]["field_scale"].tolist(), "text_weight")


def query(text: str) -> NDArray[np.float64]:
    return vector([text], [1.0], "query_weight")
