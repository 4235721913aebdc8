"""Search through HTTP, in a server in another process."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx

from benchmarks import product
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

LIMIT = 20
SEARCH = "/tools/vector-search"


def ingest_all(client: httpx.Client, repositories: Iterable[Repository], checkouts: Path) -> None:
    """Ingest the index root of each under its name, unless that was done before."""
    ingested_names = product.ingested(client)
    for repository in repositories:
        if repository.name not in ingested_names:
            started = time.perf_counter()
            folder = folder_of(repository, checkouts)
            counts = product.ingest_over_http(client, folder, repository.name)["counts"]
            seconds = time.perf_counter() - started
            print(
                f"{repository.name}: {counts['chunks']:,} chunks in {seconds:.1f} s",
                file=sys.stderr,
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
    check after each: what HTTP and the machine take in this run without any search.

    By the standard library's client on one connection: httpx takes a millisecond for itself.
    """
    server = HTTPConnection(client.base_url.host, client.base_url.port, timeout=60)
    calls: dict[str, Callable[[str, str], object]] = {
        "one repository": lambda text, repository: _timed(server, _asked(text, repository)),
        "all repositories": lambda text, repository: _timed(server, _asked(text, None)),
        "/health": lambda text, repository: _timed(server),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    queries = [(question.text, each.name) for each in repositories for question in each.questions]
    for text, repository in queries * rounds:
        for name, call in calls.items():
            started = time.perf_counter()
            call(text, repository)
            times[name].append((time.perf_counter() - started) * 1000)
    server.close()
    return times


def _timed(server: HTTPConnection, search: dict[str, Any] | None = None) -> None:
    """A search or, without one, a health check. Raises RuntimeError where it fails."""
    if search is None:
        server.request("GET", "/health")
    else:
        head = {"Content-Type": "application/json"}
        server.request("POST", SEARCH, json.dumps(search), head)
    response = server.getresponse()
    body = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{response.status} {body[:200]!r}")


def _asked(text: str, repository: str | None) -> dict[str, Any]:
    scope = {"repository": repository} if repository else {}
    return {"query": text, "limit": LIMIT, **scope}


def _search(client: httpx.Client, text: str, repository: str | None) -> dict[str, Any]:
    return product.answer(client.post(SEARCH, json=_asked(text, repository)))
