"""Ways to lose or break what an embedded Chroma keeps, done to its files."""

import os
import pickle
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import UUID

from apps.index.vectors.handles import INDEX

Harm = Callable[[Path, UUID], None]

# Chunks beyond these are in index files, and not in Chroma's database alone.
SYNC_THRESHOLD = 400


def many_files(count: int = SYNC_THRESHOLD + 50) -> dict[str, str]:
    """A chunk a file, so many that their vectors are in index files."""
    return {f"ship_{n}.py": f"def sail_{n}(wind):\n    return wind * {n}\n" for n in range(count)}


def index_folder(chroma: Path, root_id: UUID) -> Path:
    """Where the vectors of a root are."""
    statement = (
        "SELECT segments.id FROM segments JOIN collections ON collections.id = collection "
        "WHERE scope = 'VECTOR' AND name LIKE ?"
    )
    with closing(sqlite3.connect(chroma / "chroma.sqlite3")) as database:
        (name,) = database.execute(statement, [f"%{root_id.hex}"]).fetchone()
    return chroma / str(name)


def overwrite(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def database_overwritten(chroma: Path, root_id: UUID) -> None:
    overwrite(chroma / "chroma.sqlite3")


def database_truncated(chroma: Path, root_id: UUID) -> None:
    database = chroma / "chroma.sqlite3"
    os.truncate(database, database.stat().st_size // 2)


def database_header_flipped(chroma: Path, root_id: UUID) -> None:
    with (chroma / "chroma.sqlite3").open("r+b") as file:
        file.write(random.Random(7).randbytes(100))


def schema_garbled(chroma: Path, root_id: UUID) -> None:
    """A statement of the schema is no text: Chroma panics at opening it."""
    database = chroma / "chroma.sqlite3"
    statement, garbled = b"CREATE TABLE migrations", b"CREATE TABLE migr\xff\xfeions"
    content = database.read_bytes()
    assert statement in content
    database.write_bytes(content.replace(statement, garbled))


def database_deleted(chroma: Path, root_id: UUID) -> None:
    (chroma / "chroma.sqlite3").unlink()


def chroma_deleted(chroma: Path, root_id: UUID) -> None:
    shutil.rmtree(chroma)


def index_deleted(chroma: Path, root_id: UUID) -> None:
    shutil.rmtree(index_folder(chroma, root_id))


def vectors_flipped(chroma: Path, root_id: UUID) -> None:
    overwrite(index_folder(chroma, root_id) / "data_level0.bin")


def vector_flipped(chroma: Path, root_id: UUID, dimension: int = 256) -> None:
    """One vector has numbers that nobody wrote. A probe of the collection does not read it."""
    folder = index_folder(chroma, root_id)
    labels = pickle.loads((folder / "index_metadata.pickle").read_bytes())["id_to_label"]
    # A probe reads the first id and the 65th, of all; at most 50 are not in the index files.
    second = labels[sorted(labels)[1]]
    # An element: the count of its links, two for each neighbour, its vector, and its label.
    links, vector, label = 4 + 4 * 2 * INDEX["max_neighbors"], 4 * dimension, 8
    size = links + vector + label
    with (folder / "data_level0.bin").open("r+b") as file:
        elements = file.read()
        ends = range(size, len(elements) + 1, size)
        last = second.to_bytes(label, "little")
        (end,) = [end for end in ends if elements[end - label : end] == last]
        file.seek(end - label - vector)
        file.write(bytes([0x7E]) * 64)


def header_flipped(chroma: Path, root_id: UUID) -> None:
    overwrite(index_folder(chroma, root_id) / "header.bin")


def table_overwritten(chroma: Path, root_id: UUID) -> None:
    overwrite(index_folder(chroma, root_id) / "index_metadata.pickle")


def lengths_deleted(chroma: Path, root_id: UUID) -> None:
    (index_folder(chroma, root_id) / "length.bin").unlink()


def links_flipped(chroma: Path, root_id: UUID) -> None:
    """The size of a list is gigabytes: Chroma would take as much memory and disk."""
    with (index_folder(chroma, root_id) / "link_lists.bin").open("r+b") as file:
        file.seek(40)
        file.write(b"\x10\x27\x00\xf0")


# The whole store is lost or broken.
OF_THE_STORE: tuple[Harm, ...] = (
    database_overwritten,
    database_truncated,
    database_header_flipped,
    schema_garbled,
    database_deleted,
    chroma_deleted,
)
# One root's vectors are.
OF_A_ROOT: tuple[Harm, ...] = (
    index_deleted,
    links_flipped,
    vectors_flipped,
    header_flipped,
    table_overwritten,
    lengths_deleted,
)


def spoil(path: Path) -> None:
    """No database any more, whatever SQLite had put beside it."""
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
