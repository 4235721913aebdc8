"""How long History takes over HTTP, in a repository with many commits.

    python -m benchmarks.history CHECKOUT [--suffix .c] [--files N]

A server with an empty data folder ingests CHECKOUT. Then each question is asked of N of its files,
chosen at random but always the same. What is asked first writes the graph of commits in the
background; the rounds begin when it is there. Prints a table of milliseconds.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.product import answer, serving, start_over_http, wait_over_http

SEED, MOST_WAIT, LOOK = 40, 120.0, 0.2
LINES = "10-30"
QUESTIONS: dict[str, dict[str, Any]] = {
    "log of a file": {"of": "log"},
    "log of 21 lines": {"of": "log", "lines": LINES},
    "blame of 21 lines": {"of": "blame", "lines": LINES},
    "blame of the first 120 lines": {"of": "blame", "lines": "1-120"},
    "what its latest commit changed": {"of": "diff"},
}


def asked(client: httpx.Client, name: str, **form: Any) -> dict[str, Any]:
    response = client.post("/tools/history", json={"repository": name, **form})
    result: dict[str, Any] = answer(response)
    return result


def seconds_of(
    client: httpx.Client, name: str, paths: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield the questions and the seconds of each answer."""
    for path in paths:
        latest = asked(client, name, path=path, limit=1)["results"]
        for question, form in QUESTIONS.items():
            commit = {"to": latest[0]["commit"]} if form["of"] == "diff" and latest else {}
            began = time.perf_counter()
            asked(client, name, path=path, **form, **commit)
            yield question, time.perf_counter() - began


def wait_for_graph(data: Path) -> None:
    """Wait until the graph of the commits is written. Raises RuntimeError if it is not."""
    end = time.monotonic() + MOST_WAIT
    while not any((data / "commit-graphs").rglob("*graph*")):
        if time.monotonic() > end:
            raise RuntimeError("no graph of the commits was written")
        time.sleep(LOOK)


def table(seconds: dict[str, list[float]]) -> Iterator[str]:
    yield "| what | median | p95 | most |\n| --- | --- | --- | --- |"
    every = [one for of_one in seconds.values() for one in of_one]
    for question, times in {**seconds, "all": every}.items():
        ordered = sorted(times)
        figures = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1])
        yield f"| {question} | {' | '.join(f'{1_000 * one:.0f}' for one in figures)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--suffix", default=".c", help="of the files that are asked about")
    parser.add_argument("--files", type=int, default=50)
    options = parser.parse_args()
    folder: Path = options.checkout.absolute()
    with tempfile.TemporaryDirectory() as data, serving(Path(data), [folder.parent]) as client:
        wait_over_http(client, start_over_http(client, folder, folder.name))
        files = sorted(
            path
            for path in folder.rglob(f"*{options.suffix}")
            if path.read_bytes().count(b"\n") >= 120  # as many as are blamed
        )
        chosen = random.Random(SEED).sample(files, min(options.files, len(files)))
        paths = [path.relative_to(folder).as_posix() for path in chosen]
        asked(client, folder.name, of="log", path=paths[0])
        wait_for_graph(Path(data))
        seconds: dict[str, list[float]] = {question: [] for question in QUESTIONS}
        for question, one in seconds_of(client, folder.name, paths):
            seconds[question].append(one)
    print("\n".join(table(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
