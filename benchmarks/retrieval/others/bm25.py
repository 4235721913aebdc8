"""Plain BM25 over the chunks of codeinfo, without its ranking."""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.bm25 import Index
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository
from benchmarks.retrieval.scores import Ask

RETURNED = 20


def system() -> Ask:
    @cache
    def indexed(repository: str) -> tuple[list[Place], Index]:
        return _chunks_of(repository)

    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        places, index = indexed(repository.name)
        scores = index.scores(question.text)
        best = np.argsort(-scores, kind="stable")[:RETURNED]
        return [
            replace(place, path=repository.path_of(place.path))
            for place in (places[i] for i in best if scores[i] > 0)
        ]

    return ask


def _chunks_of(repository: str) -> tuple[list[Place], Index]:
    """The published chunks of a repository, and their index."""
    from apps.index.chunk_ids import chunk_id
    from apps.index.chunks import read_chunks
    from apps.index.models import Root
    from apps.index.queries import live_files

    root = Root.objects.get(name=repository)
    files = live_files(root).ingested()
    ids = [chunk_id(file.document, number) for file in files for number in range(file.chunks)]
    found = list(read_chunks((root, each) for each in ids).values())
    places = [
        Place(chunk.facts.path, chunk.facts.start_line, chunk.facts.end_line, len(chunk.text))
        for chunk in found
    ]
    return places, Index([chunk.text for chunk in found])
