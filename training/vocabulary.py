"""Which words get a row of their own, and the numbers of all others' character 4-grams."""

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
    """`words` have rows 0..n-1; then come `buckets` rows of grams."""

    words: list[str]
    texts: NDArray[np.int64]
    """In how many texts each word stands."""
    buckets: int

    @property
    def size(self) -> int:
        return len(self.words) + self.buckets


def choose(counts: Counts, size: int, buckets: int, without: Set[str]) -> Vocabulary:
    """The most frequent words of the training pairs; a question's word counts twice."""
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
    """The buckets of a word without a row, as the product's reader counts them."""
    marked = f"<{word[:LONGEST_WORD]}>"
    starts = range(max(1, len(marked) - GRAM_LENGTH + 1))
    return [
        zlib.crc32(gram.encode()) % buckets
        for gram in sorted({marked[start : start + GRAM_LENGTH] for start in starts})
    ]


@dataclass(frozen=True)
class Rows:
    """For each word of a corpus the rows that tell it: entries at[w]:at[w+1] of `row`, each with
    its share of the word."""

    at: NDArray[np.int64]
    row: NDArray[np.int32]
    share: NDArray[np.float32]


def rows_of_words(words: list[str], vocabulary: Vocabulary) -> Rows:
    known = {word: row for row, word in enumerate(vocabulary.words)}
    first = len(vocabulary.words)
    at = [0]
    rows: list[int] = []
    shares: list[float] = []
    for word in words:
        row = known.get(word)
        told = [row] if row is not None else [first + g for g in grams(word, vocabulary.buckets)]
        rows.extend(told)
        shares.extend([1 / len(told)] * len(told))
        at.append(len(rows))
    return Rows(np.array(at), np.array(rows, np.int32), np.array(shares, np.float32))
