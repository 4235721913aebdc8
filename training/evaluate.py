"""Evaluate a model on documented definitions of packages that it was not trained on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.arrays import Counts
from training.bags import Bags
from training.model import Parameters, question_vectors, text_vectors

GROUPS = {
    "python": ("python",),
    "js": ("javascript", "typescript", "jsx", "tsx"),
    "other": (
        "go",
        "rust",
        "ruby",
        "php",
        "java",
        "c",
        "cpp",
        "kotlin",
        "swift",
        "csharp",
        "scala",
        "haskell",
        "lua",
    ),
}
QUERIES, POOL = {"python": 600, "js": 400, "other": 600}, 3_600
MIN_WORDS = 4


@dataclass(frozen=True)
class Set:
    """A development set, as indexes of pairs. `pool` begins with `queries`."""

    queries: NDArray[np.int64]
    pool: NDArray[np.int64]


def development_sets(counts: Counts) -> dict[str, Set]:
    random = np.random.default_rng(3)
    found = {}
    for name, languages in GROUPS.items():
        rows = np.flatnonzero(
            counts.develop & np.isin(counts.language, languages) & (counts.kind == "definition")
        )
        rows = random.permutation(rows)[:POOL]
        words = np.diff(counts.question_at)[rows]
        queries = rows[words >= MIN_WORDS][: QUERIES[name]]
        found[name] = Set(queries, np.concatenate([queries, np.setdiff1d(rows, queries)]))
    return found


def reciprocal_ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """1/rank of the relevant text, which is column r for row r; 0 beyond rank 10."""
    right = scores[np.arange(len(scores)), np.arange(len(scores))][:, None]
    rank = (scores >= right).sum(1)
    return np.where(rank <= 10, 1 / np.maximum(rank, 1), 0.0)


def judge(parameters: Parameters, questions: Bags, texts: Bags, sets: dict[str, Set]) -> str:
    """MRR@10 of each set, in one line."""
    figures = []
    for name, each in sets.items():
        queries = question_vectors(questions.pick(each.queries), parameters)
        documents = text_vectors(texts.pick(each.pool), parameters)
        ranks = reciprocal_ranks(queries @ documents.T)
        figures.append(f"{name} {ranks.mean():.3f} ({len(each.queries)}/{len(each.pool)})")
    return ", ".join(figures)
