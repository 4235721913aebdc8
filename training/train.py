"""Train the model: mini-batches of pairs from a few packages, so that negatives are hard."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from training.arrays import Counts
from training.bags import Bags
from training.model import Floats, Parameters, contrast, encode, slope, softplus
from training.optimiser import RowAdam
from training.start import idf
from training.vocabulary import Vocabulary

log = logging.getLogger("training")


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters. benchmarks/results/embedder.md lists others that were tried."""

    dimension: int = 256
    words: int = 59_000  # rows of the vocabulary
    buckets: int = 8_192  # rows for character 4-grams
    batch: int = 2_048  # pairs
    group: int = 64  # pairs of one package in a batch, which are hard negatives of each other
    epochs: float = 2.0
    rate: float = 3e-3  # base learning rate
    scale: float = 20.0  # initial inverse temperature
    drop_words: float = 0.2  # dropout probability of a word
    hide_symbol: float = 0.3  # dropout probability of the symbol of a text
    back: float = 0.3  # weight of the loss from texts to questions
    kinds: tuple[str, ...] = ("definition", "chunk", "file")  # of pairs
    seed: int = 0


@dataclass(frozen=True)
class Data:
    """The training data: n pairs."""

    questions: Bags  # (n)
    texts: Bags  # (n)
    usable: NDArray[np.int64]  # indexes of the pairs to train on
    twin: NDArray[np.int64]  # (n) of a chunk: the pair of its definition; otherwise the pair itself
    package: NDArray[np.int32]  # (n)
    question_sum: NDArray[np.uint32]  # (n) checksum of the question, to recognise equal ones


def usable_data(
    counts: Counts, questions: Bags, texts: Bags, hyperparameters: Hyperparameters
) -> Data:
    long_enough = np.diff(counts.question_at) >= 2
    chosen = ~counts.develop & long_enough & np.isin(counts.kind, hyperparameters.kinds)
    # The pair of a chunk follows that of its definition.
    index = np.arange(len(counts))
    follows = (counts.kind == "chunk") & (counts.question_sum == np.roll(counts.question_sum, 1))
    twin = np.where(follows, index - 1, index)
    return Data(questions, texts, np.flatnonzero(chosen), twin, counts.package, counts.question_sum)


def initial(
    vectors: Floats, vocabulary: Vocabulary, hyperparameters: Hyperparameters
) -> Parameters:
    weight = np.log(np.expm1(np.clip(idf(vocabulary), 0.05, 3))).astype(np.float32)
    fields = np.array([0.5, 0.5, 1.0, 0.5], np.float32)
    scale = np.array([np.log(hyperparameters.scale)], np.float32)
    return Parameters(vectors, weight, weight.copy(), fields, scale)


def train(
    parameters: Parameters,
    data: Data,
    hyperparameters: Hyperparameters,
    judge: Callable[[Parameters], str] = lambda _: "",
) -> None:
    """Train the parameters in place. `judge` is called every 300 steps for a line of metrics."""
    random = np.random.default_rng(hyperparameters.seed)
    trainer = _Trainer(parameters, data, hyperparameters, random)
    per_epoch = sum(1 for _ in _batches(data, hyperparameters, np.random.default_rng(0)))
    steps = max(1, int(per_epoch * hyperparameters.epochs))
    started, done, loss = time.monotonic(), 0, 0.0
    log.info("%d pairs, %d steps", len(data.usable), steps)
    while done < steps:
        for batch in _batches(data, hyperparameters, random):
            # Learning rate schedule: warm-up over 100 steps, then linear decay to 2 %.
            rate_factor = min(1.0, done / 100) * max(0.02, 1 - done / steps)
            step = trainer.step(batch, rate_factor)
            loss = 0.98 * loss + 0.02 * step if done else step
            done += 1
            if done % 100 == 0 or done == steps:
                seconds = time.monotonic() - started
                log.info(
                    "step %d, loss %.3f, %.0f s %s",
                    done,
                    loss,
                    seconds,
                    judge(parameters) if done % 300 == 0 or done == steps else "",
                )
            if done == steps:
                break


def _batches(
    data: Data, hyperparameters: Hyperparameters, random: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """The batches of an epoch, as indexes of pairs. Each epoch has either a definition or its
    chunk."""
    use_definition = random.random(len(data.twin)) < 0.5
    usable = data.usable
    own = data.twin[usable] == usable
    has_twin = np.zeros(len(data.twin) + 1, bool)
    has_twin[data.twin[usable[~own]]] = True
    drawn = use_definition[data.twin[usable]]
    rows = usable[np.where(own, ~has_twin[usable] | drawn, ~drawn)]
    rows = random.permutation(rows)
    rows = rows[np.argsort(data.package[rows], kind="stable")]
    groups = [
        rows[at : at + hyperparameters.group] for at in range(0, len(rows), hyperparameters.group)
    ]
    order = random.permutation(len(groups))
    each = hyperparameters.batch // hyperparameters.group
    for at in range(0, len(order) - each + 1, each):
        yield np.concatenate([groups[group] for group in order[at : at + each]])


class _Trainer:
    def __init__(
        self,
        parameters: Parameters,
        data: Data,
        hyperparameters: Hyperparameters,
        random: np.random.Generator,
    ) -> None:
        self._parameters = parameters
        self._data = data
        self._hyperparameters = hyperparameters
        self._random = random
        rates = {
            "vectors": hyperparameters.rate,
            "question_weight": 3 * hyperparameters.rate,
            "text_weight": 3 * hyperparameters.rate,
            "field_scale": 2 * hyperparameters.rate,
            "scale": 2 * hyperparameters.rate,
        }
        self._adam = {
            name: RowAdam(values, rates[name]) for name, values in parameters.named().items()
        }

    def step(self, batch: NDArray[np.int64], rate_factor: float) -> float:
        parameters, data = self._parameters, self._data
        questions, texts = data.questions.pick(batch), self._hidden(data.texts.pick(batch))
        fields = softplus(parameters.field_scale)
        question_amounts = self._dropped(questions.amount[:, 0].astype(np.float32))
        mask = self._dropped(np.ones(len(texts.row), np.float32))
        text_fields = np.asarray(texts.amount * mask[:, None], np.float32)
        question_weights = softplus(parameters.question_weight)
        text_weights = softplus(parameters.text_weight)
        encoded_questions = encode(
            questions, question_amounts, question_weights, parameters.vectors
        )
        encoded_texts = encode(texts, text_fields @ fields, text_weights, parameters.vectors)
        sums = data.question_sum[batch]
        same = sums[:, None] == sums[None, :]
        scale = float(np.minimum(parameters.scale, np.log(60))[0])
        found = contrast(
            encoded_questions.unit, encoded_texts.unit, scale, same, self._hyperparameters.back
        )
        question_gradients = encoded_questions.back(found.to_questions, parameters.vectors)
        text_gradients = encoded_texts.back(found.to_texts, parameters.vectors)
        to_fields = _to_fields(
            texts, text_fields, text_weights, parameters.vectors, encoded_texts.sums(found.to_texts)
        )
        self._weights(
            "question_weight",
            encoded_questions.rows,
            question_gradients[1],
            question_weights,
            rate_factor,
        )
        self._weights(
            "text_weight", encoded_texts.rows, text_gradients[1], text_weights, rate_factor
        )
        rows, place = np.unique(
            np.concatenate([encoded_questions.rows, encoded_texts.rows]), return_inverse=True
        )
        gradient = np.zeros((len(rows), parameters.vectors.shape[1]), np.float32)
        gradient[place[: len(encoded_questions.rows)]] = question_gradients[0]
        gradient[place[len(encoded_questions.rows) :]] += text_gradients[0]
        self._adam["vectors"].step(rows, gradient, rate_factor)
        self._adam["field_scale"].step(
            np.arange(len(fields)), to_fields * slope(parameters.field_scale), rate_factor
        )
        self._adam["scale"].step(np.arange(1), found.to_scale, rate_factor)
        return found.loss

    def _weights(
        self,
        name: str,
        rows: NDArray[np.int64],
        gradient: Floats,
        weight: Floats,
        rate_factor: float,
    ) -> None:
        inner = self._parameters.named()[name][rows]
        self._adam[name].step(rows, gradient / weight[rows] * slope(inner), rate_factor)

    def _dropped(self, amount: Floats) -> Floats:
        mask = self._random.random(len(amount)) >= self._hyperparameters.drop_words
        return np.asarray(amount * mask, np.float32)

    def _hidden(self, texts: Bags) -> Bags:
        """Drop the symbol of random texts, so that names alone do not answer a question."""
        hidden = self._random.random(len(texts)) < self._hyperparameters.hide_symbol
        amount = texts.amount.copy()
        amount[np.repeat(hidden, np.diff(texts.at)), 2] = 0
        return replace(texts, amount=amount)


FIELD_TEXTS = 256


def _to_fields(
    texts: Bags, amounts: Floats, weight: Floats, vectors: Floats, sums: Floats
) -> Floats:
    """The gradient of the four field scales, estimated from FIELD_TEXTS texts."""
    count = min(len(texts), FIELD_TEXTS)
    part = texts.pick(np.arange(count))
    found = []
    for column in range(amounts.shape[1]):
        alone = encode(part, amounts[: len(part.row), column], weight, vectors)
        found.append(float((alone.unit * alone.length[:, None] * sums[:count]).sum()))
    return np.array(found, np.float32) * np.float32(len(texts) / count)
