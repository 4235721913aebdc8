"""From a URL to the first answer: seconds, from a git server on this machine.

    python -m benchmarks.clone REPOSITORY QUESTION [--ref REF] [--rounds N]

REPOSITORY is a bare or other git repository. In each round, a server with an empty data folder
ingests its URL, the same repository cloned by git itself, and a ref of that clone without a work
tree; each is asked as soon as it can answer. No language model is connected.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from benchmarks.product import answer, serving, wait_over_http
from tests.support.git_servers import HOST, GitServer, https_server

LOOK_SECONDS = 0.02
ROWS = ("a URL: first answer", "a URL: completed")
BESIDE = ("`git clone`", "`git clone` and its folder: first answer", "FOLDER@REF: completed")


def ask_until_answered(client: httpx.Client, repository: str, question: str) -> None:
    body = {"query": question, "repository": repository}
    while True:
        found = client.post("/tools/vector-search", json=body)
        if found.status_code == 200 and found.json()["results"]:
            return
        time.sleep(LOOK_SECONDS)


def start(client: httpx.Client, path: str, name: str) -> str:
    models = answer(client.get("/ingest/models"))
    model = models["lockedModelId"] or models["models"][0]["id"]
    body = {"path": path, "name": name, "model": model}
    return str(answer(client.post("/ingest/start", json=body))["runId"])


@contextmanager
def product(folder: Path, server: GitServer) -> Iterator[httpx.Client]:
    settings = folder / "gitconfig"
    settings.write_text(f"[http]\n\tsslCAInfo = {server.authorities}\n")
    more = {"CODEINFO_CLONE_HOSTS": HOST, "GIT_CONFIG_GLOBAL": str(settings)}
    with serving(folder / "data", [folder], **more) as client:
        yield client


def by_url(folder: Path, server: GitServer, url: str, question: str) -> list[float]:
    with product(folder, server) as client:
        began = time.monotonic()
        run = start(client, url, "by-url")
        ask_until_answered(client, "by-url", question)
        first = time.monotonic() - began
        completed(client, run)
        return [first, time.monotonic() - began]


def by_hand(folder: Path, server: GitServer, url: str, question: str, ref: str) -> list[float]:
    with product(folder, server) as client:
        began = time.monotonic()
        environ = os.environ | {"GIT_SSL_CAINFO": str(server.authorities)}
        command = ["git", "clone", "-q", url, str(folder / "cloned")]
        subprocess.run(command, check=True, env=environ)
        fetched = time.monotonic() - began
        run = start(client, str(folder / "cloned"), "by-hand")
        ask_until_answered(client, "by-hand", question)
        first = time.monotonic() - began
        completed(client, run)
        began = time.monotonic()
        completed(client, start(client, f"{folder}/cloned@{ref}", "a-ref"))
        return [fetched, first, time.monotonic() - began]


def completed(client: httpx.Client, run: str) -> None:
    status = wait_over_http(client, run)
    if status["state"] != "completed":
        raise RuntimeError(f"{status['state']}: {status.get('lastError')}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("repository", type=Path)
    parser.add_argument("question")
    parser.add_argument("--ref", default="HEAD")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        (work / "served").mkdir()
        bare = str(work / "served/repository.git")
        subprocess.run(["git", "clone", "-q", "--bare", str(options.repository), bare], check=True)
        with https_server(work / "served", work / "keys") as server:
            for number in range(options.rounds):
                url = f"{server.url}/repository.git"
                first, second = work / f"{number}a", work / f"{number}b"
                for folder in (first, second):
                    (folder / "data").mkdir(parents=True)
                rounds.append(
                    by_url(first, server, url, options.question)
                    + by_hand(second, server, url, options.question, options.ref)
                )
    print(f"| {options.repository.name} | seconds, median of {options.rounds} | all |")
    print("| --- | --- | --- |")
    for row, spent in zip(ROWS + BESIDE, zip(*rounds, strict=True), strict=True):
        shown = ", ".join(f"{one:.1f}" for one in spent)
        print(f"| {row} | {median(spent):.1f} | {shown} |")
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
