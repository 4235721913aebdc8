"""Whether look-ups in the parts of mapped roots answer as the word index does, and how fast.

    python -m benchmarks.shadow            ingests the installed Django
    python -m benchmarks.shadow FOLDER     ingests a copy of that folder

Asks both for all names, all beginnings of names of one to three letters, all outlines, and all
facts of chunks. Prints a row for each: questions, answers that differ, processor milliseconds of
both. All state is in a temporary folder. Exits 1 if an answer differs.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks import ingest, product

if TYPE_CHECKING:
    from apps.index.lexical import LexicalStore
    from apps.index.mapped.root import MappedRoot
    from apps.index.models import Root

# As the palette asks, and as a page of results does.
SYMBOLS, IDS = 300, 20
# More than any root has.
ALL = 1 << 30


class Comparison(NamedTuple):
    """What both answered to one question."""

    kind: str
    question: str
    words: object
    parts: object
    seconds: tuple[float, float]


class Shadow:
    """The two indexes of one root.

    live: documents of its live files. The word index may have others, which callers leave out.
    """

    def __init__(
        self, root: "Root", live: frozenset[str], lexical: "LexicalStore", mapped: "MappedRoot"
    ) -> None:
        from apps.index.types import Reader

        self._store, self._live = root.store, live
        self._reader = Reader(root.id, live)
        self._lexical, self._mapped = lexical, mapped

    def comparisons(self) -> Iterator[Comparison]:
        """Ask for everything that the word index has of the root."""
        lexical, mapped, store = self._lexical, self._mapped, self._store
        names = set[str]()
        for document in sorted(self._live):
            stored = lexical.outline(store, document)
            names |= {symbol.name for symbol in stored}
            # A file without chunks and definitions is in no part.
            yield self._compared(
                "outlines",
                document,
                lambda document=document: lexical.outline(store, document),
                lambda document=document: mapped.outline(document) or [],
            )
        for name in sorted({*names, *(each.swapcase() for each in names), "no such name"}):
            yield self._compared(
                "names",
                name,
                lambda name=name: lexical.definitions(store, name, self._reader),
                lambda name=name: mapped.definitions(name),
            )
        for prefix in sorted({each[:size] for each in names for size in (1, 2, 3)}):
            yield self._beginning(prefix)
        ids = sorted(each for each in lexical.ids(store) if each.rpartition(":")[0] in self._live)
        for at in range(0, len(ids), IDS):
            some = [*ids[at : at + IDS], "no such chunk:0", f"{ids[at].rpartition(':')[0]}:99999"]
            yield self._compared(
                "facts",
                f"{some[0]} and others",
                lambda some=some: lexical.facts(store, some),
                lambda some=some: mapped.facts(some),
            )

    def _beginning(self, prefix: str) -> Comparison:
        lexical, mapped, store = self._lexical, self._mapped, self._store
        compared = self._compared(
            "beginnings",
            prefix,
            lambda: lexical.symbols_beginning(store, prefix, SYMBOLS),
            lambda: mapped.symbols_beginning(prefix, SYMBOLS),
        )
        # The word index counts dead definitions among the first, too.
        every = lexical.symbols_beginning(store, prefix, ALL)
        live = [symbol for symbol in every if symbol.source_file in self._live]
        return compared._replace(words=live[:SYMBOLS])

    @staticmethod
    def _compared(
        kind: str, question: str, words: Callable[[], object], parts: Callable[[], object]
    ) -> Comparison:
        start = time.thread_time()
        of_words = words()
        between = time.thread_time()
        of_parts = parts()
        end = time.thread_time()
        return Comparison(kind, question, of_words, of_parts, (between - start, end - between))


def table(comparisons: Sequence[Comparison]) -> list[str]:
    """The rows of the table, by kind."""
    rows = ["asked | questions | differ | words p50, p95 ms | parts p50, p95 ms"]
    for kind in dict.fromkeys(each.kind for each in comparisons):
        some = [each for each in comparisons if each.kind == kind]
        differ = sum(each.words != each.parts for each in some)
        times = np.percentile([each.seconds for each in some], (50, 95), axis=0) * 1_000
        words, parts = (", ".join(f"{value:.2f}" for value in each) for each in times.T)
        rows.append(f"{kind} | {len(some):,} | {differ:,} | {words} | {parts}")
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as kept:
        folder = ingest.folder_to_ingest(kept)
        product.set_up(Path(kept) / "data", [Path(kept)])
        from apps.index import queries
        from apps.index.lexical import get_lexical
        from apps.index.mapped.copies import get_copies
        from apps.index.vectors.store import reset_store

        ingest.ingest(folder)
        root, lock = queries.find_root(str(folder)), queries.index_lock()
        mapped = get_copies().open(root, lock.dimension if lock else 0)
        if mapped is None:
            raise SystemExit(f"{folder} is not mapped.")
        shadow = Shadow(root, queries.live_file_ids(root), get_lexical(), mapped)
        comparisons = list(shadow.comparisons())
        size = sum(path.stat().st_size for path in get_copies().folder.rglob("*.part"))
        reset_store()
    print(f"{root.files:,} files, {root.chunks:,} chunks, {size:,} bytes of parts")
    print("\n".join(table(comparisons)))
    if any(each.words != each.parts for each in comparisons):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
