"""A complete training run on a few invented packages."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from training import bags, vocabulary
from training.arrays import Counts, count
from training.corpus import Folders
from training.evaluate import reciprocal_ranks
from training.export import Facts, export
from training.extract import Pair
from training.manifest import Package
from training.model import question_vectors, text_vectors
from training.start import start_vectors
from training.train import Hyperparameters, initial, train, usable_data

pytestmark = pytest.mark.door

# A question's words never stand in the code that answers it: only training can join them.
TOPICS = {
    "fetch remote page": "socket http get body",
    "sort numbers upward": "pivot partition swap less",
    "draw red circle": "canvas arc fill stroke",
    "parse command flags": "argv getopt option dash",
}
HYPERPARAMETERS = Hyperparameters(
    dimension=8, words=200, buckets=16, batch=16, group=4, epochs=30, rate=0.02
)


def corpus(folders: Folders) -> list[Package]:
    random = np.random.default_rng(0)
    folders.pairs.mkdir(parents=True)
    packages = []
    for number in range(6):
        package = Package("train", "pypi", f"p{number}", "1", f"p{number}.whl", "0" * 64, "MIT")
        pairs = []
        for repeat in range(16):
            for question, code in TOPICS.items():
                query_words = " ".join(random.permutation(question.split())[:2])
                code_words = " ".join(random.permutation(code.split())[:3])
                body = f"{code_words} step{number}x{repeat}"
                pairs.append(
                    Pair(
                        "definition", "python", f"{query_words} {number} {repeat}", "", "", "", body
                    )
                )
        folders.pairs_of(package).write_bytes(pickle.dumps(pairs))
        packages.append(package)
    return packages


def ranks(counts: Counts, rows: vocabulary.Rows, parameters) -> float:
    questions, texts = bags.questions(counts, rows), bags.texts(counts, rows)
    some = np.arange(len(TOPICS))  # one of each topic
    scores = (
        question_vectors(questions.pick(some), parameters)
        @ text_vectors(texts.pick(some), parameters).T
    )
    return float(reciprocal_ranks(scores).mean())


def test_training_moves_query_words_and_code_words_together(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    counts = count(corpus(folders), folders, processes=1)
    words = vocabulary.choose(
        counts, HYPERPARAMETERS.words, HYPERPARAMETERS.buckets, frozenset({"canva"})
    )
    rows = vocabulary.rows_of_words(counts.words, words)
    questions, texts = bags.questions(counts, rows), bags.texts(counts, rows)
    random = np.random.default_rng(1).standard_normal((words.size, HYPERPARAMETERS.dimension))
    parameters = initial(random.astype(np.float32), words, HYPERPARAMETERS)
    before = ranks(counts, rows, parameters)

    train(parameters, usable_data(counts, questions, texts, HYPERPARAMETERS), HYPERPARAMETERS)

    assert "canva" not in words.words
    assert ranks(counts, rows, parameters) == 1.0 > before

    export(parameters, words, tmp_path / "out", Facts("static-x", 6, len(counts), "—"))
    with np.load(tmp_path / "out" / "weights.npz") as stored:
        restored = stored["vectors"] * stored["scale"][:, None]
        assert stored["vectors"].dtype == np.int8
        assert np.abs(restored - parameters.vectors).max() <= stored["scale"].max()
    assert (tmp_path / "out" / "vocabulary.txt").read_text().split() == words.words


def test_start_vectors_of_words_that_share_texts_are_near(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    counts = count(corpus(folders), folders, processes=1)
    words = vocabulary.choose(counts, HYPERPARAMETERS.words, HYPERPARAMETERS.buckets, frozenset())
    rows = vocabulary.rows_of_words(counts.words, words)

    vectors = start_vectors(
        bags.questions(counts, rows), bags.texts(counts, rows), words, 4, seed=0
    )

    def nearness(first: str, second: str) -> float:
        one, other = (vectors[words.words.index(word)] for word in (first, second))
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    assert nearness("fetch", "socket") > nearness("fetch", "pivot") + 0.3


def test_copies_of_code_are_counted_once(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.pairs.mkdir()
    pair = Pair("definition", "python", "keep a value", "a.py", "put", "def put", "x = 1")
    packages = []
    for name in ("first", "second"):
        package = Package("train", "pypi", name, "1", f"{name}.whl", "0" * 64, "MIT")
        folders.pairs_of(package).write_bytes(pickle.dumps([pair]))
        packages.append(package)

    counts = count(packages, folders, processes=1)

    assert counts.package.tolist() == [0]
