"""What a copy of an ingested folder costs: time, rows and bytes of five equal copies.

    python -m benchmarks.copies            copies the installed Django
    python -m benchmarks.copies FOLDER     copies that folder

Prints one row a copy. After the fifth, one file in a hundred of it is changed, and it is ingested
again. Chroma follows after each. Processor time includes this process and its parse processes until
the copy can be searched. All state is in a temporary folder. Exits 1 on any failure.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks import ingest, product

COPIES = 5
PARTS = ("chroma", "texts", "index", "codeinfo.sqlite3")


def bytes_of(data: Path) -> dict[str, int]:
    """Bytes on the disk, by part of the data folder. The write-ahead logs are included."""
    sizes = dict.fromkeys(PARTS, 0)
    for path in data.rglob("*"):
        name = path.relative_to(data).parts[0]
        for part in PARTS:
            if name.startswith(part) and path.is_file():
                sizes[part] += path.stat().st_blocks * 512
    return sizes


def measured(folder: Path, data: Path) -> list[str]:
    """Ingest a folder. Return its row of the table."""
    from apps.embedding.catalogue import DEFAULT_MODEL
    from apps.index import queries
    from apps.index.vectors.following import following
    from apps.ingest import services
    from apps.ingest.runs import queue

    before, processor, start = bytes_of(data), sum(os.times()[:4]), time.perf_counter()
    run = services.start_run(path=str(folder), name=folder.name, model=DEFAULT_MODEL)
    queue.drain()
    seconds, processor = time.perf_counter() - start, sum(os.times()[:4]) - processor
    run.refresh_from_db()
    if run.state != "completed":
        raise SystemExit(f"The ingest ended as {run.state}: {run.last_error}")
    root = queries.find_root(str(folder))
    followed = ingest.follow()
    after = bytes_of(data)
    grown = {part: (after[part] - before[part]) / 2**20 for part in PARTS}
    return [
        folder.name,
        f"{root.chunks:,}",
        f"{following().vectors:,}",
        f"{seconds:.1f}",
        f"{followed:.1f}",
        f"{processor:.1f}",
        f"{sum(grown.values()):.1f}",
        ", ".join(f"{part} {size:.1f}" for part, size in grown.items()),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as kept:
        first = ingest.folder_to_ingest(kept)
        folders = [first.rename(first.with_name(f"{first.name}-1"))]
        folders += [
            Path(shutil.copytree(folders[0], f"{kept}/{first.name}-{number}", symlinks=True))
            for number in range(2, COPIES + 1)
        ]
        data = Path(kept) / "data"
        product.set_up(data, [Path(kept)], CODEINFO_CHROMA="follow")
        from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
        from apps.index.vectors.store import reset_client

        # What a server has loaded long before.
        get_embedder(DEFAULT_MODEL).embed_query("warm")
        rows = [measured(folder, data) for folder in folders]
        ingest.change(folders[-1])
        rows.append(measured(folders[-1], data))
        reset_client()
    print("copy | chunks | rows of Chroma | s | s of Chroma | processor s | MB more | by part")
    for row in rows:
        print(" | ".join(row))


if __name__ == "__main__":
    main()
