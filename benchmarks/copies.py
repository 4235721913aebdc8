"""What a copy of an ingested folder costs, as a worktree is one: time and bytes of twenty.

    python -m benchmarks.copies            copies the installed Django
    python -m benchmarks.copies FOLDER     copies that folder

In each copy, another file in a hundred is changed before its ingest. Prints one row a copy, and
then their processor time as a share of the first one's, and the bytes of all as a multiple of its.
Processor time includes this process and its parse processes until the copy can be searched. All
state is in a temporary folder. Exits 1 on any failure.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ingest, product

COPIES = 20
PARTS = ("texts", "grams", "index", "codeinfo.sqlite3")


def bytes_of(data: Path) -> dict[str, int]:
    """Bytes on the disk, by part of the data folder. The write-ahead logs are included."""
    sizes = dict.fromkeys(PARTS, 0)
    for path in data.rglob("*"):
        name = path.relative_to(data).parts[0]
        for part in PARTS:
            if name.startswith(part) and path.is_file():
                sizes[part] += path.stat().st_blocks * 512
    return sizes


def measured(folder: Path, data: Path) -> tuple[float, float, str]:
    """Ingest a folder. Return its processor seconds, its megabytes, and its row of the table."""
    before, processor, start = bytes_of(data), sum(os.times()[:4]), time.perf_counter()
    run = product.ingest(folder, folder.name)
    seconds, processor = time.perf_counter() - start, sum(os.times()[:4]) - processor
    after = bytes_of(data)
    grown = {part: (after[part] - before[part]) / 2**20 for part in PARTS}
    total = sum(grown.values())
    by_part = ", ".join(f"{part} {size:.1f}" for part, size in grown.items())
    row = f"{folder.name} | {run.chunks:,} | {seconds:.1f} | {processor:.2f} | {total:.1f}"
    return processor, total, f"{row} | {by_part}"


def edited_copies(first: Path) -> Iterator[Path]:
    """Yield copies of an ingested folder, each with other changes."""
    from apps.index import queries

    files = queries.live_files(queries.find_root(str(first))).ingested()
    paths = sorted(file.path for file in files)
    for number in range(2, COPIES + 1):
        target = first.with_name(f"{first.name}-{number}")
        shutil.copytree(first, target, symlinks=True)
        for path in paths[number::100]:
            with (target / path).open("a") as file:
                file.write(f"\n# {number}\n")
        yield target


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as kept:
        first = ingest.folder_to_ingest(kept)
        data = Path(kept) / "data"
        product.set_up(data, [Path(kept)])
        from apps.core.system.heap import settled
        from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
        from apps.ingest.runs import queue  # noqa: F401 - is settled, too

        # What a worker has loaded long before.
        get_embedder(DEFAULT_MODEL).embed_query("warm")
        settled()
        print("copy | chunks | s | processor s | MB more | by part")
        rows = [measured(first, data)]
        print(rows[0][2])
        for folder in edited_copies(first):
            rows.append(measured(folder, data))
            print(rows[-1][2], flush=True)
    (processor, size, _), *others = rows
    shares = sorted(one / processor for one, _, _ in others)
    total = sum(one for _, one, _ in rows) / size
    print(
        f"a copy takes {shares[len(shares) // 2]:.1%} of the first one's processor time (median),"
    )
    print(f"{shares[-1]:.1%} at most; all of them take {total:.2f} x its bytes")


if __name__ == "__main__":
    main()
