"""The product asked through HTTP, as its users do, in a server of its own process."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks import product
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

LIMIT = 20


def ingest_all(client: httpx.Client, repositories: Iterable[Repository], checkouts: Path) -> None:
    """Ingest the index root of each under its name, unless that was done before."""
    known = product.ingested(client)
    for repository in repositories:
        if repository.name not in known:
            started = time.perf_counter()
            folder = folder_of(repository, checkouts)
            counts = product.ingest_over_http(client, folder, repository.name)["counts"]
            took = time.perf_counter() - started
            print(
                f"{repository.name}: {counts['chunks']:,} chunks in {took:.1f} s", file=sys.stderr
            )


def system(client: httpx.Client) -> Ask:
    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        found = _search(client, question.text, repository.name)
        return [
            Place(
                repository.path_of(row["relPath"]),
                row["startLine"],
                row["endLine"],
                len(json.dumps(row, ensure_ascii=False)),
            )
            for row in found["results"]
        ]

    return ask


def latencies(
    client: httpx.Client, repositories: Sequence[Repository], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of every question, asked of its repository and of all together, and of a health
    check after each: what HTTP and the machine take in this run without any search."""
    calls: dict[str, Callable[[str, str], object]] = {
        "one repository": lambda text, repository: _search(client, text, repository),
        "all repositories": lambda text, repository: _search(client, text, None),
        "/health": lambda text, repository: product.answer(client.get("/health")),
    }
    taken: dict[str, list[float]] = {name: [] for name in calls}
    asked = [(question.text, each.name) for each in repositories for question in each.questions]
    for text, repository in asked * rounds:
        for name, call in calls.items():
            started = time.perf_counter()
            call(text, repository)
            taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def _search(client: httpx.Client, text: str, repository: str | None) -> dict[str, Any]:
    scope = {"repository": repository} if repository else {}
    body = {"query": text, "limit": LIMIT, **scope}
    return product.answer(client.post("/tools/vector-search", json=body))
