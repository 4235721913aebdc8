"""The analytic gradients equal numerical ones, and training learns to rank."""

import numpy as np
import pytest

from training.bags import Bags
from training.model import Parameters, contrast, encode, softplus

ROWS, DIMENSION, FIELDS = 30, 6, 4


def bags(random: np.random.Generator, texts: int, columns: int) -> Bags:
    lengths = random.integers(2, 7, texts)
    at = np.concatenate(([0], np.cumsum(lengths)))
    row = random.integers(0, ROWS, at[-1]).astype(np.int32)
    return Bags(at, row, random.random((at[-1], columns)).astype(np.float16))


def some_parameters(random: np.random.Generator) -> Parameters:
    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape)

    return Parameters(draw(ROWS, DIMENSION), draw(ROWS), draw(ROWS), draw(FIELDS), np.array([1.2]))


@pytest.mark.parametrize("back", [0.0, 0.5])
def test_each_gradient_is_the_slope_of_the_loss(back: float) -> None:
    random = np.random.default_rng(1)
    asked_bags, told_bags = bags(random, 8, 1), bags(random, 8, FIELDS)
    parameters = some_parameters(random)
    same = np.zeros((8, 8), bool)
    same[2, 5] = same[5, 2] = True

    def sides():
        fields = softplus(parameters.field_scale)
        queries = encode(
            asked_bags,
            asked_bags.amount[:, 0],
            softplus(parameters.question_weight),
            parameters.vectors,
        )
        documents = encode(
            told_bags,
            told_bags.amount @ fields,
            softplus(parameters.text_weight),
            parameters.vectors,
        )
        return queries, documents

    def loss() -> float:
        queries, documents = sides()
        return contrast(queries.unit, documents.unit, float(parameters.scale[0]), same, back).loss

    queries, documents = sides()
    found = contrast(queries.unit, documents.unit, float(parameters.scale[0]), same, back)
    to_vectors = np.zeros((ROWS, DIMENSION))
    query_vectors, query_weights = queries.back(found.to_questions, parameters.vectors)
    document_vectors, _ = documents.back(found.to_texts, parameters.vectors)
    to_vectors[queries.rows] += query_vectors
    to_vectors[documents.rows] += document_vectors

    def slope_at(array: np.ndarray, place: tuple[int, ...]) -> float:
        step, original = 1e-2, array[place]
        array[place] = original + step
        above = loss()
        array[place] = original - step
        below = loss()
        array[place] = original
        return (above - below) / (2 * step)

    for place in [
        (int(queries.rows[0]), 0),
        (int(documents.rows[1]), 3),
        (int(documents.rows[-1]), 5),
    ]:
        assert to_vectors[place] == pytest.approx(slope_at(parameters.vectors, place), abs=2e-3)
    row = int(queries.rows[0])
    weight = softplus(parameters.question_weight)[row]
    to_weight = query_weights[0] / weight / (1 + np.exp(-parameters.question_weight[row]))
    assert to_weight == pytest.approx(slope_at(parameters.question_weight, (row,)), abs=2e-3)
    assert found.to_scale[0] == pytest.approx(slope_at(parameters.scale, (0,)), abs=2e-3)
