"""Processor time and database queries of the requests that people wait for while they type.

    python -m benchmarks.pages FOLDER…          ingests the folders, and asks the pages

The search page, the command palette, the list of conversations, and `@` in the composer; in this
process, with Django's test client. Prints one table, in milliseconds of processor time: the time of
all threads, without that of search processes. Exits 1 on any failure.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from benchmarks import product

ROUNDS, WARM_UP = 15, 3
CONVERSATIONS, EXCHANGES = 400, 4

# What is asked, by what it shows of the page.
SEARCHES = {
    "words": {"q": "where is a timeout applied to a connection"},
    "words with filters": {"q": 'spawn lang:rust file:src/ -test "async fn"'},
    "text": {"q": '"fn poll"'},
    "expression": {"q": "/impl\\s+Drop/"},
    "nothing, and why": {"q": 'shutdown "no text is like this" lang:rust file:src/ -a -b -c'},
    "symbols": {"q": "poll", "mode": "symbols"},
}
TYPED = ("t", "pol", "poll_read", "connection timeout", "zzz nothing")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="what to ingest")
    folders = [folder.resolve() for folder in parser.parse_args().folders]
    with tempfile.TemporaryDirectory(prefix="codeinfo-pages-") as data:
        try:
            product.set_up(Path(data), folders)
            measure(folders)
        except (OSError, RuntimeError) as error:
            print(f"pages benchmark failed: {error}", file=sys.stderr)
            return 1
    return 0


def measure(folders: Sequence[Path]) -> None:
    runs = [product.ingest(folder, folder.name) for folder in folders]
    fill_conversations()
    print(f"{sum(run.files for run in runs):,} files, {CONVERSATIONS} conversations\n")
    print("| request | ms | slowest | queries |\n| --- | --- | --- | --- |")
    for name, params in SEARCHES.items():
        row(f"search: {name}", "/search", params)
    for text in TYPED:
        row(f"palette: {text}", "/ui/palette", {"q": text})
        row(f"palette by meaning: {text}", "/ui/palette", {"q": text, "part": "meaning"})
    for text in ("", "timeout", "zzz nothing"):
        row(f"conversations: {text or 'all'}", "/ui/chat/sidebar", {"q": text})
    for text in ("pol", "src/runtime"):
        row(f"composer: @{text}", "/ui/chat/scope", {"at": text})


def row(name: str, path: str, params: dict[str, str]) -> None:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="localhost")
    times: list[float] = []
    for number in range(WARM_UP + ROUNDS):
        started = time.process_time()
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(f"{path}?{urlencode(params)}")
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answered {answer.status_code}")
        if number >= WARM_UP:
            times.append((time.process_time() - started) * 1_000)
    print(f"| {name} | {median(times):.1f} | {max(times):.1f} | {len(queries)} |", flush=True)


def fill_conversations() -> None:
    """Conversations of several questions, some of which say the word that is searched for."""
    from apps.conversations import services

    fields = {"provider": "builtin", "model": "search", "status": "ok"}
    for number in range(CONVERSATIONS):
        made = services.create(provider="builtin", model="search", title=f"Question {number}")
        for exchange in range(EXCHANGES):
            word = "timeout" if (number + exchange) % 5 == 0 else "channel"
            text = f"How is the {word} of a task handled? " + "It is polled until ready. " * 60
            for role in ("user", "assistant"):
                parts = [{"type": "text", "text": text}]
                services.append_turn(made.id, role=role, parts=parts, **fields)


if __name__ == "__main__":
    sys.exit(main())
