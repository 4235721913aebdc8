"""What comes first for the questions that codeinfo suggests about repositories.

    python -m benchmarks.shapes FOLDER… [--data DIR]

Each FOLDER is ingested under its name. Each of its suggested questions is asked of `VectorSearch`
with the repository, as the page asks it. "First" is the first row of the answer by shape, else the
first passage. A time is that of one call; the first of a repository also parses files.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import product

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    options = parser.parse_args()
    folders = [folder.resolve() for folder in options.folders]
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        data = options.data or Path(temporary) / "data"
        product.set_up(data.resolve(), [folder.parent for folder in folders])
        ingest_all(folders)
        print("| repository | question | shape | first | rows | ms |")
        print("| --- | --- | --- | --- | --- | --- |")
        for cells in answers():
            print(f"| {' | '.join(cells)} |", flush=True)


def ingest_all(folders: list[Path]) -> None:
    from apps.index import queries

    known = {root.path for root in queries.published_roots()}
    for folder in folders:
        if str(folder) not in known:
            product.ingest(folder, folder.name)


def answers() -> Iterator[list[str]]:
    """The cells of a table."""
    from apps.conversations.welcome import examples
    from apps.index import queries
    from apps.tools.vector_search import VECTOR_SEARCH

    for root in sorted(queries.published_roots(), key=lambda root: root.name.lower()):
        for example in examples(root):
            started = perf_counter()
            found = VECTOR_SEARCH.run({"query": example.question, "repository": example.repository})
            taken = f"{(perf_counter() - started) * 1000:.0f}"
            answer: Row = found.get("answer", {"shape": "–", "rows": []})
            first = next(iter([*answer["rows"], *found["results"]]), None)
            kinds = Counter(row["kind"] for row in answer["rows"])
            rows = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            shown = (
                f"{first['relPath']}:{first['startLine']} {first.get('symbol', '')}".strip()
                if first
                else "–"
            )
            yield [root.name, example.text, answer["shape"], shown, rows or "–", taken]


if __name__ == "__main__":
    main()
