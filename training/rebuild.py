"""The whole chain, step by step; each keeps its result, and a repeated run goes on from there."""

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
from training.train import Recipe, initial, train, usable_data
from training.word_pieces import word_vectors

log = logging.getLogger("training")


def rebuild(folders: Folders, processes: int, recipe: Recipe | None = None) -> None:
    """Fetch, extract, count, train, judge and write the product's files."""
    recipe = recipe or Recipe()
    packages = read_manifest()
    fetch(packages, folders)
    extract(packages, folders, processes)
    counts = _counts(packages, folders, processes)
    names = personal(counts, packages, folders)
    log.info("%d pairs; %d names stay out of the vocabulary", len(counts), len(names))
    words = vocabulary.choose(counts, recipe.words, recipe.buckets, names)
    rows = vocabulary.rows_of_words(counts.words, words)
    questions, texts = bags.questions(counts, rows), bags.texts(counts, rows)
    seen = start_vectors(questions, texts, words, recipe.dimension, recipe.seed)
    written = surfaces(words.words, packages, folders)
    vectors = joined(seen, word_vectors(written, words, packages, folders))
    parameters = initial(vectors, words, recipe)
    sets = development_sets(counts)
    data = usable_data(counts, questions, texts, recipe)
    train(parameters, data, recipe, lambda now: judge(now, questions, texts, sets))
    trained_on = {package.name for package in packages if package.role == "train"}
    figures = judge(parameters, questions, texts, sets)
    export(parameters, words, FOLDER, Facts(MODEL_ID, len(trained_on), len(data.usable), figures))


def _counts(packages: list[Package], folders: Folders, processes: int) -> Counts:
    path = folders.root / "counts.npz"
    if not path.exists():
        count(packages, folders, processes).save(path)
    return Counts.load(path)
