"""All steps of a training run. Each step saves its result, so an interrupted run can resume."""

import logging

from apps.embedding.static import FOLDER, MODEL_ID
from training import bags, vocabulary
from training.arrays import Counts, count
from training.corpus import Folders, extract
from training.evaluate import development_sets, judge
from training.export import Facts, export
from training.fetch import fetch
from training.manifest import Package, read_manifest
from training.names import personal
from training.start import joined, start_vectors
from training.surfaces import surfaces
from training.train import Hyperparameters, initial, train, usable_data
from training.word_pieces import word_vectors

log = logging.getLogger("training")


def rebuild(
    folders: Folders, processes: int, hyperparameters: Hyperparameters | None = None
) -> None:
    """Fetch, extract, count, train, evaluate, and write the files of the embedder."""
    hyperparameters = hyperparameters or Hyperparameters()
    packages = read_manifest()
    fetch(packages, folders)
    extract(packages, folders, processes)
    counts = _counts(packages, folders, processes)
    names = personal(counts, packages, folders)
    log.info("%d pairs; %d names stay out of the vocabulary", len(counts), len(names))
    words = vocabulary.choose(counts, hyperparameters.words, hyperparameters.buckets, names)
    rows = vocabulary.rows_of_words(counts.words, words)
    questions, texts = bags.questions(counts, rows), bags.texts(counts, rows)
    corpus_vectors = start_vectors(
        questions, texts, words, hyperparameters.dimension, hyperparameters.seed
    )
    written = surfaces(words.words, packages, folders)
    vectors = joined(corpus_vectors, word_vectors(written, words, packages, folders))
    parameters = initial(vectors, words, hyperparameters)
    sets = development_sets(counts)
    data = usable_data(counts, questions, texts, hyperparameters)
    train(parameters, data, hyperparameters, lambda now: judge(now, questions, texts, sets))
    trained_on = {package.name for package in packages if package.role == "train"}
    figures = judge(parameters, questions, texts, sets)
    export(parameters, words, FOLDER, Facts(MODEL_ID, len(trained_on), len(data.usable), figures))


def _counts(packages: list[Package], folders: Folders, processes: int) -> Counts:
    path = folders.root / "counts.npz"
    if not path.exists():
        count(packages, folders, processes).save(path)
    return Counts.load(path)
