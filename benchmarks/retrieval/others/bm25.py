"""Plain BM25 over the chunks of codeinfo, without its ranking."""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bm25 import Index
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository
from benchmarks.retrieval.scores import Ask

if TYPE_CHECKING:
    from apps.index.types import StoredMatch

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
    from apps.index.models import Root, SourceFile
    from apps.index.vectors.store import get_store

    root = Root.objects.get(name=repository)
    live = {
        str(id_) for id_ in SourceFile.objects.filter(root=root).live().values_list("id", flat=True)
    }
    found = [m for m in get_store().records(root.id) if m.facts.source_file in live]
    return [_place(match) for match in found], Index([match.text for match in found])


def _place(match: "StoredMatch") -> Place:
    path, start, end = match.facts.path, match.facts.start_line, match.facts.end_line
    return Place(str(path), int(start), int(end), len(match.text))
