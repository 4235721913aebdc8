"""The words that get a row, and the n-gram buckets of all other words."""

import zlib
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.embedding.static import GRAM_LENGTH
from apps.embedding.words import LONGEST_WORD
from training.arrays import Counts

FEWEST_TEXTS = 4
LONGEST_NUMBER = 4


@dataclass(frozen=True)
class Vocabulary:
    """Rows 0..n-1 are words; `buckets` rows for n-grams follow."""

    words: list[str]  # (n)
    texts: NDArray[np.int64]  # (n) document frequency
    buckets: int

    @property
    def size(self) -> int:
        return len(self.words) + self.buckets


def choose(counts: Counts, size: int, buckets: int, without: Set[str]) -> Vocabulary:
    """The most frequent words of the training pairs, at most `size`. Words of questions count
    twice."""
    training = ~counts.develop
    in_texts = np.repeat(training, np.diff(counts.text_at))
    in_questions = np.repeat(training, np.diff(counts.question_at))
    frequency = np.bincount(counts.text_word[in_texts], minlength=len(counts.words))
    frequency += 2 * np.bincount(counts.question_word[in_questions], minlength=len(counts.words))
    chosen: list[int] = []
    for number in np.argsort(-frequency, kind="stable"):
        word = counts.words[number]
        if len(chosen) == size or frequency[number] < FEWEST_TEXTS:
            break
        if word not in without and not (word.isdigit() and len(word) > LONGEST_NUMBER):
            chosen.append(int(number))
    return Vocabulary([counts.words[n] for n in chosen], frequency[chosen], buckets)


def grams(word: str, buckets: int) -> list[int]:
    """The n-gram buckets of a word that has no row, as in apps/embedding/static.py."""
    padded = f"<{word[:LONGEST_WORD]}>"
    starts = range(max(1, len(padded) - GRAM_LENGTH + 1))
    return [
        zlib.crc32(gram.encode()) % buckets
        for gram in sorted({padded[start : start + GRAM_LENGTH] for start in starts})
    ]


@dataclass(frozen=True)
class Rows:
    """The rows of each word of a corpus, in compressed sparse form."""

    at: NDArray[np.int64]  # word w has the entries at[w]:at[w+1]
    row: NDArray[np.int32]
    share: NDArray[np.float32]  # weight of the row in the word; 1 in total


def rows_of_words(words: list[str], vocabulary: Vocabulary) -> Rows:
    row_of = {word: row for row, word in enumerate(vocabulary.words)}
    first = len(vocabulary.words)
    at = [0]
    rows: list[int] = []
    shares: list[float] = []
    for word in words:
        row = row_of.get(word)
        word_rows = (
            [row] if row is not None else [first + g for g in grams(word, vocabulary.buckets)]
        )
        rows.extend(word_rows)
        shares.extend([1 / len(word_rows)] * len(word_rows))
        at.append(len(rows))
    return Rows(np.array(at), np.array(rows, np.int32), np.array(shares, np.float32))
