"""The model: a text's vector is the weighted sum of its words' vectors, at unit length.

There is no automatic differentiation here: the model is linear in the word vectors, so every
gradient is a product with the same sparse matrix that made the vector.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from training.bags import Bags

Floats = NDArray[np.float32]
TINY = np.float32(1e-6)


def softplus(value: Floats) -> Floats:
    return np.logaddexp(np.float32(0), value).astype(np.float32)


def slope(value: Floats) -> Floats:
    """The derivative of softplus."""
    return (1 / (1 + np.exp(-value))).astype(np.float32)


@dataclass
class Parameters:
    """The trained parameters. Weights are stored as the inverse of softplus, so they stay
    positive."""

    vectors: Floats  # (rows, dimension)
    question_weight: Floats  # (rows)
    text_weight: Floats  # (rows)
    field_scale: Floats  # (4)
    scale: Floats  # (1) the logarithm of the inverse temperature

    def named(self) -> dict[str, Floats]:
        return dict(vars(self))


@dataclass(frozen=True)
class Encoded:
    """Vectors of a batch of n, and the values that their gradient needs."""

    unit: Floats  # (n, dimension), unit length
    length: Floats  # (n) before normalisation
    matrix: csr_matrix  # (n, len(rows)) weights of the rows
    rows: NDArray[np.int64]  # distinct rows of the batch

    def sums(self, gradient: Floats) -> Floats:
        """The gradient of the sums before normalisation, from that of the unit vectors."""
        inner = np.einsum("ij,ij->i", gradient, self.unit)[:, None]
        raw = (gradient - inner * self.unit) / self.length[:, None]
        return np.asarray(raw, np.float32)

    def back(self, gradient: Floats, vectors: Floats) -> tuple[Floats, Floats]:
        """The gradient of `vectors[rows]`, and the gradient of the weight of each row times that
        weight, from the gradient of the unit vectors."""
        to_vectors = np.asarray(self.matrix.T @ self.sums(gradient), np.float32)
        return to_vectors, np.einsum("ij,ij->i", to_vectors, vectors[self.rows])


def encode(bags: Bags, amounts: Floats, weight: Floats, vectors: Floats) -> Encoded:
    """The unit vectors of `bags`. `amounts` has a number for each entry."""
    rows, place = np.unique(bags.row, return_inverse=True)
    matrix = csr_matrix((amounts * weight[bags.row], place, bags.at), shape=(len(bags), len(rows)))
    total = np.asarray(matrix @ vectors[rows], np.float32)
    length = np.sqrt(np.einsum("ij,ij->i", total, total)) + TINY
    return Encoded(total / length[:, None], length, matrix, rows.astype(np.int64))


def question_vectors(bags: Bags, parameters: Parameters) -> Floats:
    weight = softplus(parameters.question_weight)
    return encode(bags, bags.amount[:, 0].astype(np.float32), weight, parameters.vectors).unit


def text_vectors(bags: Bags, parameters: Parameters) -> Floats:
    weight = softplus(parameters.text_weight)
    amounts = bags.amount.astype(np.float32) @ softplus(parameters.field_scale)
    return encode(bags, amounts, weight, parameters.vectors).unit


@dataclass(frozen=True)
class Contrast:
    """The loss of a batch and its gradient with respect to both sides' unit vectors and scale."""

    loss: float
    to_questions: Floats
    to_texts: Floats
    to_scale: Floats


def contrast(
    questions: Floats, texts: Floats, log_scale: float, same: NDArray[np.bool_], back: float
) -> Contrast:
    """InfoNCE loss (van den Oord et al. 2018) from questions to texts, plus `back` times the loss
    from texts to questions. Pairs in `same` (n, n) are not negatives."""
    scale = np.float32(np.exp(log_scale))
    scores = questions @ texts.T
    raised = np.where(same, np.float32(-1e4), scores * scale)
    right = np.arange(len(scores))
    raised[right, right] = scores[right, right] * scale
    loss, gradient = np.float32(0), np.zeros_like(scores)
    for axis, importance in ((1, 1.0), (0, back)):
        top = raised.max(axis=axis, keepdims=True)
        exponentials = np.exp(raised - top)
        sums = exponentials.sum(axis=axis, keepdims=True)
        loss += importance * float((np.log(sums) + top).mean() - raised[right, right].mean())
        exponentials *= np.float32(importance) / sums
        exponentials[right, right] -= np.float32(importance)
        gradient += exponentials
    gradient /= np.float32(len(scores))
    to_scale = np.array([(gradient * scores).sum() * scale], np.float32)
    gradient *= scale
    return Contrast(float(loss), gradient @ texts, gradient.T @ questions, to_scale)
