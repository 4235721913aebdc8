"""Word counts of pairs as arrays."""

import pickle
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from multiprocessing import Pool
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from apps.embedding.words import stems
from training.corpus import MOST_PAIRS, Folders
from training.extract import Pair
from training.manifest import Package

FIELDS = ("body", "path", "symbol", "signature")
MOST_COUNT = 255
# Pairs of one kind with the same question; further ones are dropped.
MAX_REPEATS = 3


@dataclass
class Counts:
    """Word counts of n pairs, in compressed sparse form."""

    words: list[str]  # the word of each number
    question_at: NDArray[np.int64]  # (n+1) question r has the entries question_at[r:r+2]
    question_word: NDArray[np.int32]  # numbers of words
    question_count: NDArray[np.uint8]
    text_at: NDArray[np.int64]  # (n+1) as question_at
    text_word: NDArray[np.int32]
    text_count: NDArray[np.uint8]  # (entries, 4): a column for each of FIELDS
    kind: NDArray[np.str_]  # (n) PairKind
    language: NDArray[np.str_]  # (n)
    package: NDArray[np.int32]  # (n) index in the manifest
    develop: NDArray[np.bool_]  # (n) in the development set
    question_sum: NDArray[np.uint32]  # (n) checksum of the question

    def __len__(self) -> int:
        return len(self.kind)

    def save(self, path: Path) -> None:
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "words"}
        np.savez(path, **arrays)
        path.with_suffix(".words").write_text("\n".join(self.words), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        words = path.with_suffix(".words").read_text(encoding="utf-8").split("\n")
        return cls(words=words, **arrays)


class _Builder:
    """Counts the words of pairs. Words are numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.question: tuple[list[int], list[int], list[int]] = [0], [], []
        self.text: tuple[list[int], list[int], list[list[int]]] = [0], [], []
        self.kinds: list[str] = []
        self.languages: list[str] = []
        self.sums: list[int] = []
        self.bodies: list[int] = []

    def _number(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers))

    def add(self, pair: Pair) -> None:
        at, words, counts = self.question
        for word, count in Counter(stems(pair.question)).items():
            words.append(self._number(word))
            counts.append(min(count, MOST_COUNT))
        at.append(len(words))
        rows: dict[str, list[int]] = {}
        for column, text in enumerate((pair.body, pair.path, pair.symbol, pair.signature)):
            for word, count in Counter(stems(text)).items():
                rows.setdefault(word, [0, 0, 0, 0])[column] = min(count, MOST_COUNT)
        text_at, text_words, text_counts = self.text
        text_words.extend(map(self._number, rows))
        text_counts.extend(rows.values())
        text_at.append(len(text_words))
        self.kinds.append(pair.kind)
        self.languages.append(pair.language)
        self.sums.append(zlib.crc32(re.sub(r"\W+", " ", pair.question.lower()).strip().encode()))

    def counts(self, package: int, develop: bool) -> Counts:
        return Counts(
            words=list(self.numbers),
            question_at=np.array(self.question[0], np.int64),
            question_word=np.array(self.question[1], np.int32),
            question_count=np.array(self.question[2], np.uint8),
            text_at=np.array(self.text[0], np.int64),
            text_word=np.array(self.text[1], np.int32),
            text_count=np.array(self.text[2], np.uint8).reshape(-1, len(FIELDS)),
            kind=np.array(self.kinds, dtype="U10"),
            language=np.array(self.languages, dtype="U10"),
            package=np.full(len(self.kinds), package, np.int32),
            develop=np.full(len(self.kinds), develop),
            question_sum=np.array(self.sums, np.uint32),
        )


def _counted(task: tuple[int, Path, bool]) -> tuple[Counts, NDArray[np.uint32]]:
    """The counts of one package, and a checksum of the code of each pair, to find copies."""
    number, path, develop = task
    builder = _Builder()
    codes = []
    for pair in pickle.loads(path.read_bytes())[:MOST_PAIRS]:
        builder.add(pair)
        codes.append(
            zlib.crc32(f"{pair.kind} {' '.join(pair.body.split())}".encode("utf-8", "replace"))
        )
    return builder.counts(number, develop), np.array(codes, np.uint32)


def count(packages: Iterable[Package], folders: Folders, processes: int = 2) -> Counts:
    """The counts of all pairs. Of pairs with equal code only the first in the manifest is used."""
    tasks = [
        (number, folders.pairs_of(package), package.role == "develop")
        for number, package in enumerate(packages)
        if folders.pairs_of(package).exists()
    ]
    with Pool(processes) as pool:
        parts = list(_distinct(pool.imap(_counted, tasks, chunksize=8)))
    return _joined(parts)


def _distinct(parts: Iterable[tuple[Counts, NDArray[np.uint32]]]) -> Iterator[Counts]:
    codes_before: set[int] = set()
    times: Counter[tuple[str, int]] = Counter()
    for counts, codes in parts:
        keep = []
        for row, code in enumerate(codes.tolist()):
            question = str(counts.kind[row]), int(counts.question_sum[row])
            times[question] += 1
            if code not in codes_before and times[question] <= MAX_REPEATS:
                keep.append(row)
            codes_before.add(code)
        if keep:
            yield rows_of(counts, np.array(keep))


def entries(
    at: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The indexes of the entries of rows, and the offsets of these rows in a selection."""
    lengths = at[rows + 1] - at[rows]
    new = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(new[-1]) + np.repeat(at[rows] - new[:-1], lengths)
    return places, new


def rows_of(counts: Counts, rows: NDArray[np.int64]) -> Counts:
    """Some of the rows, in the given order."""
    questions, question_at = entries(counts.question_at, rows)
    texts, text_at = entries(counts.text_at, rows)
    return Counts(
        words=counts.words,
        question_at=question_at,
        question_word=counts.question_word[questions],
        question_count=counts.question_count[questions],
        text_at=text_at,
        text_word=counts.text_word[texts],
        text_count=counts.text_count[texts],
        kind=counts.kind[rows],
        language=counts.language[rows],
        package=counts.package[rows],
        develop=counts.develop[rows],
        question_sum=counts.question_sum[rows],
    )


def _joined(parts: list[Counts]) -> Counts:
    """Concatenate counts and renumber their words."""
    numbers: dict[str, int] = {}
    new = [
        np.array([numbers.setdefault(word, len(numbers)) for word in part.words], np.int32)
        for part in parts
    ]

    def offsets(name: str) -> NDArray[np.int64]:
        lengths = [np.diff(getattr(part, name)) for part in parts]
        return np.concatenate(([0], np.cumsum(np.concatenate(lengths))))

    def together(name: str) -> NDArray[np.generic]:
        return np.concatenate([getattr(part, name) for part in parts])

    columns = {
        name: together(name)
        for name in (
            "kind",
            "language",
            "package",
            "develop",
            "question_sum",
            "question_count",
            "text_count",
        )
    }
    return Counts(
        words=list(numbers),
        question_at=offsets("question_at"),
        question_word=np.concatenate([n[p.question_word] for n, p in zip(new, parts, strict=True)]),
        text_at=offsets("text_at"),
        text_word=np.concatenate([n[p.text_word] for n, p in zip(new, parts, strict=True)]),
        **columns,  # type: ignore[arg-type]
    )
