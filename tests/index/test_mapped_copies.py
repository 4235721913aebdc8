"""The mapped copy of a root: written once for each generation, shared by all processes, and never
used if it is damaged."""

import errno
import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

import numpy as np
import pytest

from apps.core.errors import Unavailable
from apps.core.system import disk
from apps.embedding.types import Vectors
from apps.index.lexical import LexicalStore, words
from apps.index.mapped import building, files, part
from apps.index.mapped.best import best
from apps.index.mapped.copies import MappedCopies
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.types import ChunkRecord
from apps.index.vectors.store import VectorStore
from tests.index.records import record
from tests.support.mapped import unit_vectors

DIMENSION = 32
TEXTS = ("open the socket", "shut the door and open it", "parse a header", "open open open")


class World:
    """A root in a word index and a vector store, and its mapped copy."""

    def __init__(self, folder: Path) -> None:
        self.lexical = LexicalStore(folder / "lexical")
        self.copies = MappedCopies(folder / "mapped")
        self.root = Root(id=uuid4(), name="r", path="/r", generation=0, model="m")
        self.live: dict[str, list[ChunkRecord]] = {}  # by SourceFile
        self.requested: list[str] = []  # ids of vectors
        self._vectors: dict[str, Vectors] = {}

    @property
    def folder(self) -> Path:
        return self.copies.folder / self.root.id.hex

    def description(self, generation: int) -> str:
        """The name of the file of a generation."""
        return f"{self.root.id.hex}-{generation}.json"

    def publish(
        self, changed: Iterable[str] = (), removed: Iterable[str] = (), run: str = "r"
    ) -> None:
        """Publish a generation. The files have three chunks."""
        for path in (*changed, *removed):
            self.live = {k: v for k, v in self.live.items() if not k.endswith(f"/{path}")}
        for path in changed:
            texts = [f"{TEXTS[(len(path) + i) % 4]} {path}" for i in range(3)]
            rows = [
                replace(record(path, text, i, run, names=f"a{i} b"), id=f"{run}/{path}:{i}")
                for i, text in enumerate(texts)
            ]
            self.lexical.add(self.root.id, rows)
            self.live[f"{run}/{path}"] = rows
            for row, vector in zip(
                rows, unit_vectors(3, DIMENSION, len(self._vectors)), strict=True
            ):
                self._vectors[row.id] = vector
        self.root.generation += 1
        self.root.embedded = self.root.chunks = len(self.records)
        self.root.files = len(self.live)

    @property
    def records(self) -> list[ChunkRecord]:
        return [row for rows in self.live.values() for row in rows]

    def vectors(self, root_id: UUID, ids: Sequence[str]) -> Vectors | None:
        """The verb of a VectorStore."""
        self.requested += ids
        if not set(ids) <= set(self._vectors):
            return None
        return np.array([self._vectors[each] for each in ids])

    def forget_vector(self) -> None:
        self._vectors.popitem()

    def open(self) -> MappedRoot | None:
        return self.copies.open(self.root, DIMENSION)

    def write(self) -> MappedRoot | None:
        store = cast(VectorStore, self)
        return self.copies.write(self.root, frozenset(self.live), self.lexical, store, "ours")

    def check(self, mapped: MappedRoot | None) -> None:
        """The copy has the live chunks with their names, files, vectors and words."""
        assert mapped is not None
        assert mapped.is_of(self.root.generation, DIMENSION)
        assert mapped.live == len(self.records)
        found = {}
        for each in mapped.parts:
            for row, (chunk_id, path, names) in enumerate(each.part.chunks(range(len(each)))):
                if each.live is None or each.live[row]:
                    codes = each.part.codes
                    vector = (codes.high[row] * 256.0 + codes.low[row]) * codes.scales[row]
                    found[chunk_id] = path, names, vector
        assert set(found) == {row.id for row in self.records}
        for row in self.records:
            path, names, vector = found[row.id]
            assert (path, tuple(names)) == (row.path, row.chunk.names)
            assert vector.tolist() == pytest.approx(self._vectors[row.id].tolist(), abs=1e-4)
        self._check_words(mapped)

    def _check_words(self, mapped: MappedRoot) -> None:
        """The scores are those of an index of the live chunks alone."""
        fresh = LexicalStore(self.copies.folder.parent / uuid4().hex)
        fresh.add(self.root.id, self.records)
        for question in ("open the socket", "header", "door a.py", "nowhere", "open"):
            query = list(dict.fromkeys(words(question)))
            expected = {hit.id: hit.score for hit in fresh.search(self.root.id, query, 10_000)}
            ids = [
                chunk[0] for each in mapped.parts for chunk in each.part.chunks(range(len(each)))
            ]
            hits = mapped.hits(query)
            rows, found, _ = best(hits, [each.part.live for each in hits], 10_000)
            scores = dict.fromkeys(ids, 0.0) | {
                ids[row]: score for row, score in zip(rows.tolist(), found.tolist(), strict=True)
            }
            assert {i: score for i, score in scores.items() if score} == pytest.approx(
                expected, rel=1e-5
            )
            assert (mapped.counts(query), mapped.chunks) == fresh.frequencies(self.root.id, query)
        fresh.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.lexical.close()


def names(count: int) -> list[str]:
    return [f"{'d' * (i % 5)}{i}.py" for i in range(count)]


def parts_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.part")}


def test_a_copy_has_what_the_stores_have_and_is_written_once(world: World) -> None:
    world.publish(names(20))
    assert world.open() is None
    world.check(world.write())
    world.requested.clear()
    # Another process.
    world.check(MappedCopies(world.copies.folder).open(world.root, DIMENSION))
    assert world.requested == []


def test_a_new_generation_costs_what_has_changed(world: World) -> None:
    world.publish(names(20))
    world.write()
    (first,) = parts_in(world.folder)
    world.requested.clear()
    world.publish(changed=["d1.py"], removed=["0.py"], run="s")
    world.check(world.write())
    world.check(world.open())
    assert world.requested == [row.id for row in world.live["s/d1.py"]]
    assert first in parts_in(world.folder)
    assert len(parts_in(world.folder)) == 2
    # The file of the generation before is gone.
    assert [path.name for path in world.folder.glob("*.json")] == [world.description(2)]


def test_the_number_of_parts_grows_slowly(world: World) -> None:
    world.publish(names(40))
    for number in range(30):
        world.publish(changed=[f"new{number}.py"], run=f"run{number}")
        mapped = world.write()
    world.check(mapped)
    assert len(parts_in(world.folder)) <= 5
    # No vector was requested twice.
    assert len(world.requested) == len(set(world.requested))


def test_a_part_that_is_mostly_dead_is_written_again(world: World) -> None:
    world.publish(names(20))
    world.write()
    world.publish(removed=names(20)[:10])
    world.requested.clear()
    mapped = world.write()
    world.check(mapped)
    assert mapped is not None
    assert sum(map(len, mapped.parts)) == len(world.records)
    assert world.requested == []


def test_large_roots_have_several_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PART_ROWS", 10)
    monkeypatch.setattr(building, "PARTS_AT_ONCE", 2)
    world.publish(names(17))
    mapped = world.write()
    world.check(mapped)
    assert mapped is not None
    # The three chunks of a file stay together.
    assert [len(part) for part in mapped.parts] == [9, 9, 9, 9, 9, 6]


@pytest.mark.parametrize("harm", ["truncated", "footer", "column", "older", "removed", "empty"])
def test_a_damaged_copy_is_not_used_and_written_again(
    world: World, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.publish(names(5))
    world.write()
    (path,) = world.folder.glob("*.part")
    content = path.read_bytes()
    harmed = {
        "truncated": content[:-64],
        "footer": content.replace(b'"facts"', b'"fact."', 1),
        "column": content[:1_000] + bytes(1_000) + content[2_000:],
        "older": content[:-16] + b"codeinfo-mappet\n",
        "empty": b"",
    }
    path.unlink()
    if harm in harmed:
        path.write_bytes(harmed[harm])
    with caplog.at_level(logging.WARNING):
        assert world.open() is None
    assert ("mapped copy not usable" in caplog.text) is (harm != "removed")
    world.check(world.write())
    world.check(world.open())
    assert len(parts_in(world.folder)) == 1


def test_a_part_says_who_wrote_it_and_is_named_by_its_content(world: World) -> None:
    world.publish(names(5))
    mapped = world.write()
    assert mapped is not None
    (path,) = world.folder.glob("*.part")
    assert part.owner_of(path) == part.Owner("ours", world.root.id.hex, "")
    assert mapped.parts[0].part.name == path.stem == hashlib.sha256(path.read_bytes()).hexdigest()
    other = files.write(world.folder, ".part", {"owner": {"root": "00"}}, {})
    with pytest.raises(files.Damaged, match="names no owner"):
        part.owner_of(world.folder / f"{other}.part")


def test_a_copy_of_another_format_is_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish(names(5))
    world.write()
    monkeypatch.setattr(files, "VERSION", files.VERSION + 1)
    assert world.open() is None
    world.requested.clear()
    world.check(world.write())
    assert len(world.requested) == len(world.records)


@pytest.mark.parametrize("text", ["", "no checksum", "00000000\n{}"])
def test_a_damaged_list_of_parts_is_not_used(world: World, text: str) -> None:
    world.publish(names(5))
    world.write()
    (path,) = world.folder.glob("*.json")
    path.write_text(text)
    assert world.open() is None
    world.check(world.write())


def test_a_copy_of_other_vectors_or_another_generation_is_not_used(world: World) -> None:
    world.publish(names(5))
    world.write()
    assert world.copies.open(world.root, DIMENSION + 1) is None
    world.root.model = "other"
    assert world.open() is None
    world.root.model = "m"
    world.root.embedded -= 1  # as after a restored database
    assert world.open() is None
    world.root.embedded += 1
    world.root.generation += 1
    assert world.open() is None


def test_without_all_words_or_vectors_no_copy_is_written(world: World) -> None:
    world.publish(names(5))
    world.root.embedded += 1
    assert world.write() is None
    world.root.embedded -= 1
    world.forget_vector()
    assert world.write() is None
    assert parts_in(world.folder) == set()


def test_a_full_disk_is_reported_and_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish(names(5))
    world.write()
    before = parts_in(world.folder)
    world.publish(changed=names(30), run="s")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(Unavailable) as raised:
            world.write()
        assert raised.value.code == disk.CODE
    assert {path.name for path in world.folder.iterdir()} == {*before, world.description(1), "lock"}

    spaces = [replace(each, free=each.required + 1) for each in disk.spaces()]
    with monkeypatch.context() as patch:
        patch.setattr(disk, "spaces", lambda: spaces)
        with pytest.raises(Unavailable) as raised:
            world.write()
        assert raised.value.code == disk.CODE
    world.check(world.write())


def test_two_processes_write_a_copy_once(world: World) -> None:
    world.publish(names(30))
    results: list[MappedRoot | None] = []

    def load() -> None:
        copies = MappedCopies(world.copies.folder)
        store = cast(VectorStore, world)
        live = frozenset(world.live)
        results.append(copies.write(world.root, live, world.lexical, store, "ours"))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mapped in results:
        world.check(mapped)
    assert len(world.requested) == len(world.records)
    assert len(parts_in(world.folder)) == 1


def test_removed_and_orphaned_copies_are_deleted(world: World) -> None:
    world.publish(names(5))
    mapped = world.write()
    (world.copies.folder / uuid4().hex).mkdir()
    world.copies.sweep([(world.root.store, world.root.id)])
    assert [path.name for path in world.copies.folder.iterdir()] == [world.root.id.hex]
    world.copies.drop(world.root.id)
    assert list(world.copies.folder.iterdir()) == []
    # A search that is under way reads on.
    world.check(mapped)
    world.copies.drop(world.root.id)
    MappedCopies(world.copies.folder / "missing").sweep([])


def test_leftovers_of_a_killed_process_are_deleted(world: World) -> None:
    world.publish(names(5))
    world.write()
    for name in ("unfinished.tmp", f"{uuid4().hex}.part"):
        (world.folder / name).write_bytes(b"...")
    world.publish(changed=["a.py"], run="s")
    world.check(world.write())
    assert not list(world.folder.glob("*.tmp"))
    assert len(parts_in(world.folder)) == 2
