"""The training itself: batches of pairs, grouped so that wrong answers are hard to tell."""

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
from training.start import rarity
from training.vocabulary import Vocabulary

log = logging.getLogger("training")


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training. docs/embedder.md tells what else was tried."""

    dimension: int = 256
    words: int = 59_000
    buckets: int = 8_192
    batch: int = 2_048
    group: int = 64  # pairs of one package that go together, so that their answers compete
    epochs: float = 2.0
    rate: float = 3e-3
    scale: float = 20.0
    drop_words: float = 0.2
    hide_symbol: float = 0.3
    back: float = 0.3  # how much texts must find their questions
    kinds: tuple[str, ...] = ("definition", "chunk", "file")
    seed: int = 0


@dataclass(frozen=True)
class Data:
    """What is trained on: bags of all pairs, which of them may be used, and who they are."""

    questions: Bags
    texts: Bags
    usable: NDArray[np.int64]
    twin: NDArray[np.int64]
    package: NDArray[np.int32]
    question_sum: NDArray[np.uint32]


def usable_data(counts: Counts, questions: Bags, texts: Bags, recipe: Recipe) -> Data:
    long_enough = np.diff(counts.question_at) >= 2
    chosen = ~counts.develop & long_enough & np.isin(counts.kind, recipe.kinds)
    # A chunk stands right behind the definition that it was made of.
    index = np.arange(len(counts))
    behind = (counts.kind == "chunk") & (counts.question_sum == np.roll(counts.question_sum, 1))
    twin = np.where(behind, index - 1, index)
    return Data(questions, texts, np.flatnonzero(chosen), twin, counts.package, counts.question_sum)


def initial(vectors: Floats, vocabulary: Vocabulary, recipe: Recipe) -> Parameters:
    weight = np.log(np.expm1(np.clip(rarity(vocabulary), 0.05, 3))).astype(np.float32)
    fields = np.array([0.5, 0.5, 1.0, 0.5], np.float32)
    scale = np.array([np.log(recipe.scale)], np.float32)
    return Parameters(vectors, weight, weight.copy(), fields, scale)


def train(
    parameters: Parameters,
    data: Data,
    recipe: Recipe,
    judge: Callable[[Parameters], str] = lambda _: "",
) -> None:
    """Change the parameters in place; `judge` is asked for a line of figures now and then."""
    random = np.random.default_rng(recipe.seed)
    trainer = _Trainer(parameters, data, recipe, random)
    per_epoch = sum(1 for _ in _batches(data, recipe, np.random.default_rng(0)))
    steps = max(1, int(per_epoch * recipe.epochs))
    begun, done, loss = time.monotonic(), 0, 0.0
    log.info("%d pairs, %d steps", len(data.usable), steps)
    while done < steps:
        for batch in _batches(data, recipe, random):
            pace = min(1.0, done / 100) * max(0.02, 1 - done / steps)
            step = trainer.step(batch, pace)
            loss = 0.98 * loss + 0.02 * step if done else step
            done += 1
            if done % 100 == 0 or done == steps:
                spent = time.monotonic() - begun
                log.info(
                    "step %d, loss %.3f, %.0f s %s",
                    done,
                    loss,
                    spent,
                    judge(parameters) if done % 300 == 0 or done == steps else "",
                )
            if done == steps:
                break


def _batches(
    data: Data, recipe: Recipe, random: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Rows of pairs. Of a definition and its chunk one is drawn in each epoch."""
    head_or_tail = random.random(len(data.twin)) < 0.5
    usable = data.usable
    own = data.twin[usable] == usable
    has_twin = np.zeros(len(data.twin) + 1, bool)
    has_twin[data.twin[usable[~own]]] = True
    drawn = head_or_tail[data.twin[usable]]
    rows = usable[np.where(own, ~has_twin[usable] | drawn, ~drawn)]
    rows = random.permutation(rows)
    rows = rows[np.argsort(data.package[rows], kind="stable")]
    groups = [rows[at : at + recipe.group] for at in range(0, len(rows), recipe.group)]
    order = random.permutation(len(groups))
    each = recipe.batch // recipe.group
    for at in range(0, len(order) - each + 1, each):
        yield np.concatenate([groups[group] for group in order[at : at + each]])


class _Trainer:
    def __init__(
        self, parameters: Parameters, data: Data, recipe: Recipe, random: np.random.Generator
    ) -> None:
        self._parameters = parameters
        self._data = data
        self._recipe = recipe
        self._random = random
        rates = {
            "vectors": recipe.rate,
            "question_weight": 3 * recipe.rate,
            "text_weight": 3 * recipe.rate,
            "field_scale": 2 * recipe.rate,
            "scale": 2 * recipe.rate,
        }
        self._adam = {
            name: RowAdam(values, rates[name]) for name, values in parameters.named().items()
        }

    def step(self, batch: NDArray[np.int64], pace: float) -> float:
        parameters, data = self._parameters, self._data
        questions, texts = data.questions.pick(batch), self._hidden(data.texts.pick(batch))
        fields = softplus(parameters.field_scale)
        asked_amount = self._dropped(questions.amount[:, 0].astype(np.float32))
        kept = self._dropped(np.ones(len(texts.row), np.float32))
        told_fields = np.asarray(texts.amount * kept[:, None], np.float32)
        asked_weight = softplus(parameters.question_weight)
        told_weight = softplus(parameters.text_weight)
        asked = encode(questions, asked_amount, asked_weight, parameters.vectors)
        told = encode(texts, told_fields @ fields, told_weight, parameters.vectors)
        sums = data.question_sum[batch]
        same = sums[:, None] == sums[None, :]
        scale = float(np.minimum(parameters.scale, np.log(60))[0])
        found = contrast(asked.unit, told.unit, scale, same, self._recipe.back)
        asked_back = asked.back(found.to_questions, parameters.vectors)
        told_back = told.back(found.to_texts, parameters.vectors)
        to_fields = _to_fields(
            texts, told_fields, told_weight, parameters.vectors, told.sums(found.to_texts)
        )
        self._weights("question_weight", asked.rows, asked_back[1], asked_weight, pace)
        self._weights("text_weight", told.rows, told_back[1], told_weight, pace)
        rows, place = np.unique(np.concatenate([asked.rows, told.rows]), return_inverse=True)
        gradient = np.zeros((len(rows), parameters.vectors.shape[1]), np.float32)
        gradient[place[: len(asked.rows)]] = asked_back[0]
        gradient[place[len(asked.rows) :]] += told_back[0]
        self._adam["vectors"].step(rows, gradient, pace)
        self._adam["field_scale"].step(
            np.arange(len(fields)), to_fields * slope(parameters.field_scale), pace
        )
        self._adam["scale"].step(np.arange(1), found.to_scale, pace)
        return found.loss

    def _weights(
        self, name: str, rows: NDArray[np.int64], gradient: Floats, weight: Floats, pace: float
    ) -> None:
        inner = self._parameters.named()[name][rows]
        self._adam[name].step(rows, gradient / weight[rows] * slope(inner), pace)

    def _dropped(self, amount: Floats) -> Floats:
        kept = self._random.random(len(amount)) >= self._recipe.drop_words
        return np.asarray(amount * kept, np.float32)

    def _hidden(self, texts: Bags) -> Bags:
        """Without the symbol's words in some texts, so that a question is not answered by names
        alone."""
        hidden = self._random.random(len(texts)) < self._recipe.hide_symbol
        amount = texts.amount.copy()
        amount[np.repeat(hidden, np.diff(texts.at)), 2] = 0
        return replace(texts, amount=amount)


FIELD_TEXTS = 256


def _to_fields(
    texts: Bags, amounts: Floats, weight: Floats, vectors: Floats, sums: Floats
) -> Floats:
    """The gradient of the four field scales, from that of the texts' sums: some of the texts will
    do, for four numbers."""
    count = min(len(texts), FIELD_TEXTS)
    part = texts.pick(np.arange(count))
    found = []
    for column in range(amounts.shape[1]):
        alone = encode(part, amounts[: len(part.row), column], weight, vectors)
        found.append(float((alone.unit * alone.length[:, None] * sums[:count]).sum()))
    return np.array(found, np.float32) * np.float32(len(texts) / count)
