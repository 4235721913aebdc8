"""How well a search finds the files that answer, beside other systems in the same run.

    python -m benchmarks.retrieval --checkouts DIR                   all of it, through HTTP
    python -m benchmarks.retrieval --checkouts DIR --fetch BASE      clones first, by commit
    python -m benchmarks.retrieval --checkouts DIR --in-process --data KEPT     only `search`, fast

The set names repositories and commits; DIR/<name> is a checkout of each. `--in-process` ingests
once into the folder KEPT and then answers in seconds; `--weights a=0,b=1` replaces weights of the
ranking, `--save FILE` keeps the scores, `--compare FILE` tells what changed since.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import product
from benchmarks.retrieval import direct, questions, scores, tables


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--set", type=Path, default=questions.SET, help="another set, same form")
    parser.add_argument("--only", default="", help="names of repositories, comma separated")
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    parser.add_argument("--again", action="store_true", help="ingest what is ingested already")
    parser.add_argument("--in-process", action="store_true", help="score search() and no others")
    parser.add_argument("--weights", type=weights, default={}, help="name=value, comma separated")
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
    checkouts = options.checkouts.resolve()
    if options.fetch:
        for repository in repositories:
            questions.fetch(repository, checkouts, options.fetch.rstrip("/"))
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        data = options.data or Path(temporary) / "data"
        product.set_up(data.resolve(), [checkouts], LOG_LEVEL="error")
        direct.ingest_all(repositories, checkouts, again=options.again)
        ours = scores.judged(direct.system(options.weights), repositories)
    report(ours, options)
    return 0


def report(ours: list[scores.Score], options: argparse.Namespace) -> None:
    systems = {"codeinfo": ours}
    if options.compare:
        systems["before"] = scores.saved(options.compare)
    print(tables.overall(systems))
    print(tables.by("language", systems))
    if options.compare:
        print(tables.differences("codeinfo", systems))
        print(tables.changes(ours, systems["before"]))
    if options.misses:
        print(tables.worst(ours, options.misses))
    if options.save:
        scores.save(ours, options.save)


if __name__ == "__main__":
    sys.exit(main())
