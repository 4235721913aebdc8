"""The product asked without HTTP: ingest once into a kept folder, then call `search` itself."""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import product
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

LIMIT = 20


def ingest_all(repositories: Iterable[Repository], checkouts: Path, *, again: bool) -> None:
    """Ingest the index root of each under its name; those ingested before only if `again`."""
    from apps.ingest import queries

    known = {root.name for root in queries.published_roots()}
    for repository in repositories:
        if repository.name in known and not again:
            continue
        started = time.perf_counter()
        run = product.ingest(folder_of(repository, checkouts), repository.name)
        took = time.perf_counter() - started
        print(f"ingested {run.name}: {run.chunks:,} chunks in {took:.1f} s", file=sys.stderr)


def system(weights: Mapping[str, float] | None = None) -> Ask:
    """`apps.retrieval.search.search` with some of the ranking's weights replaced."""
    from apps.retrieval.search import search
    from apps.retrieval.types import SearchQuery

    search(SearchQuery("warm"))
    options = {"weights": _weights(weights)} if weights else {}

    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        found = search(SearchQuery(question.text, repository.name, LIMIT), **options)
        return [
            Place(repository.path_of(match.rel_path), match.start_line, match.end_line)
            for match in found.matches
        ]

    return ask


def _weights(replaced: Mapping[str, float]) -> object:
    from dataclasses import replace

    from apps.retrieval.ranking import Weights

    return replace(Weights(), **replaced)
