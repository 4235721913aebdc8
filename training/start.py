"""Initial word vectors, from the co-occurrence of words in texts.

They are the singular vectors of the matrix of pairs and words, in which a question and its code are
one row: randomised SVD with power iterations (Halko, Martinsson and Tropp 2011).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from training.bags import Bags
from training.vocabulary import Vocabulary

MOST_PAIRS = 300_000
EXTRA = 16
ROUNDS = 2
RARE_TEXTS = 50  # document frequency assumed for a bucket of n-grams


def idf(vocabulary: Vocabulary) -> NDArray[np.float32]:
    """The inverse document frequency of each row, relative to the most frequent word; mean 1."""
    texts = np.concatenate([vocabulary.texts, np.full(vocabulary.buckets, RARE_TEXTS)])
    found = np.log1p(texts.max() / texts)
    return np.asarray(found / found.mean(), np.float32)


def start_vectors(
    questions: Bags, texts: Bags, vocabulary: Vocabulary, dimension: int, seed: int
) -> NDArray[np.float32]:
    """A vector for each row of the vocabulary, of length 1 on average."""
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(len(questions))[:MOST_PAIRS])
    chosen_questions, chosen_texts = questions.pick(chosen), texts.pick(chosen)
    weight = idf(vocabulary)
    both = _matrix(chosen_questions, chosen_questions.amount[:, 0], weight) + _matrix(
        chosen_texts, chosen_texts.amount.max(1), weight
    )
    lengths = np.sqrt(np.asarray(both.multiply(both).sum(1)).ravel()) + 1e-6
    both = csr_matrix(both.multiply((1 / lengths)[:, None]), dtype=np.float32)
    found = _singular_vectors(both, dimension, random)
    noise = random.standard_normal(found.shape).astype(np.float32)
    found /= np.sqrt((found**2).sum(1, keepdims=True)) + np.float32(1e-8)
    found += np.float32(0.1 / dimension**0.5) * noise
    return np.asarray(found / np.sqrt((found**2).sum(1)).mean(), np.float32)


def _matrix(bags: Bags, amount: NDArray[np.float16], weight: NDArray[np.float32]) -> csr_matrix:
    data = amount.astype(np.float32) * weight[bags.row]
    return csr_matrix((data, bags.row, bags.at), shape=(len(bags), len(weight)))


def _singular_vectors(
    matrix: csr_matrix, dimension: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """Right singular vectors, each scaled by the square root of its singular value."""
    probe = random.standard_normal((matrix.shape[1], dimension + EXTRA)).astype(np.float32)
    for _ in range(ROUNDS):
        probe, _ = np.linalg.qr(matrix.T @ (matrix @ probe))
    left, _ = np.linalg.qr(matrix @ probe)
    _, values, right = np.linalg.svd(np.asarray(matrix.T @ left).T, full_matrices=False)
    scaled = np.sqrt(values[1 : dimension + 1])[:, None] * right[1 : dimension + 1]
    return np.asarray(scaled.T, np.float32)


def joined(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """Concatenate two tables of unit vectors and reduce them to the dimension of the first by
    PCA."""
    both = np.concatenate([_unit(first), _unit(second)], axis=1)
    _, axes = np.linalg.eigh((both.T @ both).astype(np.float64))
    found = both @ axes[:, ::-1][:, : first.shape[1]].astype(np.float32)
    return np.asarray(found / np.sqrt((found**2).sum(1)).mean(), np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt((vectors**2).sum(1, keepdims=True)) + np.float32(1e-8)
    return np.asarray(vectors / lengths, np.float32)
