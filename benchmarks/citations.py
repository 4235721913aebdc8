"""How often the check of citations judges right, on generated edits.

    python -m benchmarks.citations FOLDER… [--edits 1000] [--seed 1]

Passages of 1 to 60 lines are taken from the files of each FOLDER, which is copied and ingested. A
file is edited on the disk so that what has become of the passage is known by construction
(`edits.py`), checked as the head of an answer is, and written back. It is checked twice: with the
stored text of the file, and with nothing but the lines that a tool returned.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.edits import EDITS, Case, Edited

if TYPE_CHECKING:
    from apps.index.models import Root
    from apps.lookup.citations import Cited

SIZES = (1, 1, 2, 3, 5, 10, 20, 60)
MAX_LINES, MAX_FILES = 4_000, 400
WINDOW = 15  # lines around a passage that a tool returned, at most
AROUND = 3
COLUMNS = ("right", "false alarm", "wrong place", "said to hold", "unknown")
Counts = dict[tuple[str, str], Counter[str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--edits", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        base = Path(temporary) / "src"
        product.set_up(Path(temporary) / "data", [base])
        for folder in options.folders:
            shutil.copytree(folder, base / folder.name, symlinks=True)
            product.ingest(base / folder.name, folder.name)
        for title, counts in measured(random.Random(options.seed), options.edits):
            show(title, counts)


def measured(rng: random.Random, edits: int) -> Iterator[tuple[str, Counts]]:
    """The counts by kind of edit and whether the passage is there: with the stored text, and
    without it."""
    from apps.lookup.citations import check

    files = files_of()
    known: tuple[Counts, Counts] = ({}, {})
    done = 0
    while done < edits:
        root, path, lines = rng.choice(files)
        case = case_of(rng, path, lines, rng.choice(files)[2])
        if case is None:
            continue
        kind = rng.choice(list(EDITS))
        edited = rng.choice(EDITS[kind])(rng, case)
        if is_no_edit(case, edited):
            continue
        done += 1
        with_edit = Path(root.path)
        undo = write(with_edit, case, edited)
        for counts, cited in zip(known, citations_of(rng, root, case), strict=True):
            (checked,) = check([cited])
            truth = "there" if edited.start else "altered"
            word = judged(checked.verdict, checked.path, checked.start, edited, case)
            counts.setdefault((kind, truth), Counter())[word] += 1
        undo()
    yield "The text of the file is stored", known[0]
    yield "Only the lines of the answer are known", known[1]


def files_of() -> list[tuple["Root", str, list[str]]]:
    """Some ingested files of each repository, with their lines."""
    from apps.code.chunking import decode, lines_of
    from apps.index import queries

    files = []
    for root in sorted(queries.published_roots(), key=lambda root: root.name):
        rows = queries.live_files(root).ingested().filter(encoding="")
        for row in rows.order_by("sha256")[:MAX_FILES]:
            data = (Path(root.path) / row.path).read_bytes()
            lines = lines_of(decode(data))
            if 3 <= len(lines) <= MAX_LINES and not row.path.endswith(".ipynb"):
                files.append((root, row.path, lines))
    return files


def case_of(rng: random.Random, path: str, lines: list[str], other: list[str]) -> Case | None:
    start = rng.randrange(1, len(lines) + 1)
    case = Case(path, lines, start, min(len(lines), start + rng.choice(SIZES) - 1), other)
    return case if any(line.strip() for line in case.passage) else None


def is_no_edit(case: Case, edited: Edited) -> bool:
    """Whether the passage and what stands around it are at their place, letter by letter, though
    it was altered: one of many equal lines was deleted, say, and nothing tells which one."""
    if edited.start is not None or edited.lines is None or edited.path:
        return False
    around = slice(max(0, case.start - 1 - AROUND), case.end + AROUND)
    return edited.lines[around] == case.lines[around]


def write(folder: Path, case: Case, edited: Edited):  # type: ignore[no-untyped-def]
    """Edit a file; the function that undoes it."""
    file = folder / case.path
    before = file.read_bytes()
    new = folder / edited.path if edited.path else file
    made = [parent for parent in new.parents if not parent.exists()]
    if edited.lines is None or new != file:
        file.unlink()
    if edited.lines is not None:
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text("\n".join(edited.lines) + "\n", newline="")

    def undo() -> None:
        if new != file:
            new.unlink()
            for parent in made:
                parent.rmdir()
        file.write_bytes(before)

    return undo


def citations_of(rng: random.Random, root: "Root", case: Case) -> Iterator["Cited"]:
    """The passage as an answer cites it, with and without what tells the stored text."""
    from apps.core.values.times import wire_time
    from apps.lookup.citations import Cited
    from apps.retrieval.repositories import repo_id

    first = max(1, case.start - rng.randrange(WINDOW))
    last = min(len(case.lines), case.end + rng.randrange(WINDOW))
    lines = tuple(case.lines[first - 1 : last])
    at = wire_time(root.last_ingest_at) if root.last_ingest_at else ""
    place = repo_id(root), case.path, case.start, case.end, lines, first
    yield Cited(*place, generation=root.generation, at=at)
    yield Cited(*place, at=at)


def judged(verdict: str, path: str, start: int | None, edited: Edited, case: Case) -> str:
    """A word of COLUMNS."""
    if verdict == "unknown":
        return "unknown"
    if edited.start is None:
        return "said to hold" if start else "right"
    if start is None:
        return "false alarm"
    is_right = (path, start) == (edited.path or case.path, edited.start)
    return "right" if is_right else "wrong place"


def show(title: str, counts: Counts) -> None:
    print(f"\n{title}:\n")
    print(f"| edit | passage | edits | {' | '.join(COLUMNS)} |")
    print("| --- | --- |" + " ---: |" * (len(COLUMNS) + 1))
    totals: Counts = {}
    for (kind, truth), words in sorted(counts.items()):
        print(row_of(kind, truth, words))
        totals.setdefault(("all", truth), Counter()).update(words)
    for (kind, truth), words in sorted(totals.items()):
        print(row_of(kind, truth, words))


def row_of(kind: str, truth: str, words: Counter[str]) -> str:
    cells = [
        kind,
        truth,
        *(f"{count:,}" for count in (words.total(), *(words[c] for c in COLUMNS))),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
