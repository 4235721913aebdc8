"""Search in this process, without HTTP."""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from django.test import override_settings

from apps.core.config import config
from benchmarks import product
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

if TYPE_CHECKING:
    from apps.retrieval.results import Match

LIMIT = 20
# What a question says of its repository, by scope.
IN_SCOPE: Mapping[str, Callable[[str], str]] = {
    "one": lambda name: "",
    "all": lambda name: "",
    "named": lambda name: f" in {name}",
    "part": lambda name: f" in {max(re.findall('[A-Za-z]+', name), key=len)}",
}


def ingest_all(repositories: Iterable[Repository], checkouts: Path, *, again: bool) -> None:
    """Ingest the index root of each under its name. Skips ingested ones unless `again`."""
    from apps.index import queries

    ingested_names = {root.name for root in queries.published_roots()}
    for repository in repositories:
        if repository.name in ingested_names and not again:
            continue
        started = time.perf_counter()
        run = product.ingest(folder_of(repository, checkouts), repository.name)
        seconds = time.perf_counter() - started
        print(f"{run.name}: {run.chunks:,} chunks in {seconds:.1f} s", file=sys.stderr)


def load_all(repositories: Iterable[Repository]) -> None:
    """Map all, as in a server that has been in use."""
    from apps.retrieval.query import SearchQuery
    from apps.retrieval.search import search

    for repository in repositories:
        search(SearchQuery("what is here", (repository.name,)))


def system(
    weights: Mapping[str, float] | None = None, mode: str = "hybrid", scope: str = "one"
) -> Ask:
    """`apps.retrieval.search.search` in a mode, with some weights of its ranking replaced.

    scope: the repository of the question alone (`one`); or all, asked the question as it is
    (`all`), with the name of its repository (`named`), or with the longest part of it (`part`)
    """
    from apps.retrieval.query import SearchQuery
    from apps.retrieval.ranking import Weights, rank
    from apps.retrieval.search import search

    in_force = override_settings(CONFIG=replace(config(), retrieval_mode=mode))
    # Weights are not settings. Only benchmarks replace them.
    weighted = partial(rank, weights=replace(Weights(), **(weights or {})))

    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        only = (repository.name,) if scope == "one" else ()
        text = question.text + IN_SCOPE[scope](repository.name)
        with in_force, patch("apps.retrieval.search.rank", weighted):
            found = search(SearchQuery(text, only, LIMIT))
        return [
            Place(
                _path(repository, match),
                match.start_line,
                match.end_line,
                len(json.dumps(match.as_wire(), ensure_ascii=False)),
            )
            for match in found.matches
        ]

    return ask


def _path(repository: Repository, match: "Match") -> str:
    """The path of a match in the repository; of another one, a path that answers nothing."""
    path = repository.path_of(match.rel_path)
    return path if match.repo == repository.name else f"{path}:{match.repo}"
