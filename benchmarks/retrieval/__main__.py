"""The retrieval quality of codeinfo, compared with other systems in the same run.

    python -m benchmarks.retrieval --checkouts DIR --fetch BASE --others PYTHON
    python -m benchmarks.retrieval --checkouts DIR --in-process --data KEPT

The set has repositories and commits. DIR/<name> is a checkout of each, which --fetch clones from
BASE/<owner>/<name>. A server with an empty data folder ingests each repository and is queried
through its API. If PYTHON has requirements-bench.txt installed, ripgrep and semble are measured
too.

--in-process only scores the function `search`, which takes seconds once KEPT has the index.
--weights replaces weights of the ranking, --save writes the scores, and --compare shows the changes
since they were written.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx

from benchmarks import product
from benchmarks.retrieval import ablation, direct, questions, scores, served, tables
from benchmarks.retrieval.others import bm25, grep, semble
from benchmarks.retrieval.questions import Repository
from benchmarks.retrieval.tables import Systems

OURS = "codeinfo"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--others", type=Path, help="a Python that has requirements-bench.txt")
    parser.add_argument("--set", type=Path, default=questions.SET, help="another set, same form")
    parser.add_argument("--only", default="", help="names of repositories, comma separated")
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    parser.add_argument("--rounds", type=int, default=3, help="times each question is timed")
    parser.add_argument("--in-process", action="store_true", help="score search() and no others")
    parser.add_argument("--again", action="store_true", help="with it: ingest what was ingested")
    parser.add_argument("--mode", default="hybrid", help="with it: hybrid or vector")
    parser.add_argument("--scope", default="one", choices=direct.IN_SCOPE, help="with it")
    parser.add_argument("--weights", type=weights, default={}, help="with it: name=value,…")
    parser.add_argument("--misses", type=int, default=0, help="list that many of the worst")
    parser.add_argument("--save", type=Path, help="keep the scores in this file")
    parser.add_argument("--compare", type=Path, help="tell the difference to kept scores")
    return parser.parse_args()


def weights(text: str) -> dict[str, float]:
    pairs = (part.split("=") for part in text.split(",") if part)
    return {name.strip(): float(value) for name, value in pairs}


def main() -> int:
    options = arguments()
    repositories = questions.load(options.set, [name for name in options.only.split(",") if name])
    options.checkouts = options.checkouts.resolve()
    if options.fetch:
        for repository in repositories:
            questions.fetch(repository, options.checkouts, options.fetch.rstrip("/"))
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        data = (options.data or Path(temporary) / "data").resolve()
        try:
            if options.in_process:
                ask_in_process(options, repositories, data)
            else:
                ask_everyone(options, repositories, data)
        except (httpx.HTTPError, OSError, RuntimeError) as error:
            print(f"retrieval benchmark failed: {error}", file=sys.stderr)
            return 1
    return 0


def ask_in_process(
    options: argparse.Namespace, repositories: Sequence[Repository], data: Path
) -> None:
    product.set_up(data, [options.checkouts])
    direct.ingest_all(repositories, options.checkouts, again=options.again)
    direct.load_all(repositories)
    ask = direct.system(options.weights, options.mode, options.scope)
    report(options, {OURS: scores.judged(ask, repositories)})


def ask_everyone(
    options: argparse.Namespace, repositories: Sequence[Repository], data: Path
) -> None:
    """First the server, which owns the data folder while it runs; then the rest."""
    with product.serving(data, [options.checkouts]) as client:
        served.ingest_all(client, repositories, options.checkouts)
        systems = {OURS: scores.judged(served.system(client), repositories)}
        taken = served.latencies(client, repositories, options.rounds)
        chunks = product.ingested(client)
    product.set_up(data, [options.checkouts])
    asks = {
        "codeinfo, vectors only": direct.system(mode="vector"),
        "BM25 over the same chunks": bm25.system(),
    }
    if options.others:
        ripgrep = options.others.with_name("rg")
        asks["ripgrep by keyword"] = grep.system(ripgrep, options.checkouts)
        asks["semble's BM25 and ranking"] = semble.system(options.others, options.checkouts)
    systems |= {name: scores.judged(ask, repositories) for name, ask in asks.items()}
    report(options, systems)
    print(tables.published(repositories))
    print(tables.tokens(systems))
    print(tables.latency(taken, chunks))
    print(tables.ablation(systems[OURS], ablation.without_each(repositories)))


def report(options: argparse.Namespace, systems: Systems) -> None:
    ours = systems[OURS]
    if options.compare:
        systems = {**systems, "before": scores.saved(options.compare)}
    print(tables.overall(systems))
    print(tables.by("language", systems))
    if len(systems) > 1:
        print(tables.differences(OURS, systems))
    if options.compare:
        print(tables.changes(ours, systems["before"]))
    if options.misses:
        print(tables.worst(ours, options.misses))
    if options.save:
        scores.save(ours, options.save)


if __name__ == "__main__":
    sys.exit(main())
