"""Texts as bags of weighted rows of the vocabulary."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.arrays import Counts, entries
from training.vocabulary import Rows


@dataclass(frozen=True)
class Bags:
    """n texts in compressed sparse form. The vector of a text is a weighted sum of rows."""

    at: NDArray[np.int64]  # (n+1) text t has the entries at[t]:at[t+1]
    row: NDArray[np.int32]  # (entries)
    amount: NDArray[np.float16]  # (entries, fields) weight of the row by field

    def __len__(self) -> int:
        return len(self.at) - 1

    def pick(self, texts: NDArray[np.int64]) -> "Bags":
        places, at = entries(self.at, texts)
        return Bags(at, self.row[places], self.amount[places])


def _bags(
    at: NDArray[np.int64], words: NDArray[np.int32], logs: NDArray[np.float32], rows: Rows
) -> Bags:
    places, offsets = entries(rows.at, words.astype(np.int64))
    lengths = np.diff(offsets)
    amounts = np.repeat(logs, lengths, axis=0) * rows.share[places, None]
    return Bags(offsets[at], rows.row[places], amounts.astype(np.float16))


def questions(counts: Counts, rows: Rows) -> Bags:
    logs = np.log1p(counts.question_count.astype(np.float32))[:, None]
    return _bags(counts.question_at, counts.question_word, logs, rows)


def texts(counts: Counts, rows: Rows) -> Bags:
    logs = np.log1p(counts.text_count.astype(np.float32))
    return _bags(counts.text_at, counts.text_word, logs, rows)
