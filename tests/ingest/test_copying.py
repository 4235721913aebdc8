"""The mapped copy is there when a generation is published, and is never of another one."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import Conflict
from apps.index import queries
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.mapped import part
from apps.index.mapped.copies import get_copies
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.vectors.store import VectorStore
from apps.ingest.runs import integrity, sweep
from apps.ingest.runs.generation import Generation
from tests.support.ingested import ingest, run_ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture(autouse=True)
def _with_memory(configure: Callable[..., None]) -> None:
    configure(retrieval_memory_mb=64)


def copy_of(root: Root) -> MappedRoot | None:
    lock = queries.index_lock()
    assert lock is not None
    return get_copies().open(root, lock.dimension)


def paths_of(mapped: MappedRoot) -> set[str]:
    return {
        path
        for each in mapped.parts
        for row, (_, path, _) in enumerate(each.part.chunks(range(len(each.part))))
        if each.live is None or each.live[row]
    }


def test_a_published_generation_has_its_copy_without_reading_vectors(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    vectors = VectorStore.vectors
    monkeypatch.setattr(
        VectorStore,
        "vectors",
        lambda self, root_id, ids: read.append(len(ids)) or vectors(self, root_id, ids),
    )
    root = ingest(repo)
    mapped = copy_of(root)
    assert mapped is not None and mapped.live == root.embedded
    write_files(repo, {"src/more.py": "def more():\n    return 1\n"})
    root = ingest(repo)
    mapped = copy_of(root)
    assert mapped is not None
    assert "src/more.py" in paths_of(mapped)
    (repo / "src/more.py").unlink()
    assert run_ingest(repo, root.name).state == "skipped"  # nothing new, and a file less
    root = queries.find_root(str(repo))
    mapped = copy_of(root)
    assert mapped is not None
    assert "src/more.py" not in paths_of(mapped)
    assert read == []


def test_the_copy_is_that_which_the_stores_give(repo: Path, store: Any) -> None:
    root = ingest(repo)
    spooled = copy_of(root)
    get_copies().drop(root.store)
    live = queries.live_file_ids(root)
    stored = get_copies().write(root, live, get_lexical(), store, installation_id())
    assert spooled is not None and stored is not None
    for one, other in zip(spooled.parts, stored.parts, strict=True):
        for field in ("high", "low", "scales", "signs"):
            values = (getattr(each.part.codes, field).tolist() for each in (one, other))
            assert next(values) == next(values)
        for name in part.Part.__dataclass_fields__:
            if name in ("file_of", "lengths", "ends", "texts", "file_texts"):
                assert getattr(one.part, name).tolist() == getattr(other.part, name).tolist()


def test_a_generation_that_is_not_published_leaves_the_copy_before(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    write_files(repo, {"src/more.py": "def more():\n    return 1\n"})

    def refuse(self: Generation, delta: object) -> None:
        raise Conflict("removed meanwhile")

    with monkeypatch.context() as patch:
        patch.setattr(Generation, "publish", refuse)
        assert run_ingest(repo, root.name).state == "error"
    mapped = copy_of(root)
    assert mapped is not None and "src/more.py" not in paths_of(mapped)
    names = {each.name for each in (get_copies().folder / root.store.hex).iterdir()}
    assert names == {
        "lock",
        f"{root.id.hex}-1.json",
        *(f"{each.part.name}.part" for each in mapped.parts),
    }


def test_the_sweep_deletes_what_a_killed_run_has_left(repo: Path, store: Any) -> None:
    root = ingest(repo)
    folder = get_copies().folder / root.store.hex
    before = {each.name for each in folder.iterdir()}
    for name in ("f" * 32 + ".part", f"{root.id.hex}-2.tmp"):
        (folder / name).write_bytes(b"half")
    sweep.sweep()
    assert {each.name for each in folder.iterdir()} == before
    assert copy_of(root) is not None


def test_a_run_ends_well_if_the_copy_cannot_be_written(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(part, "write", fail)
    with caplog.at_level("WARNING", "codeinfo.index"):
        root = ingest(repo)
    assert root.generation == 1
    assert copy_of(root) is None
    assert "mapped copy not written" in caplog.text


def test_memory_is_freed_where_searches_read_the_copy(
    repo: Path, store: Any, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[int] = []

    def free_memory(self: VectorStore) -> None:
        freed.append(queries.published_roots()[0].generation if queries.published_roots() else 0)

    monkeypatch.setattr(VectorStore, "free_memory", free_memory)
    ingest(repo)
    assert freed == [0, 1]  # before the copy is written, and when old chunks are deleted
    write_files(repo, {"src/more.py": "def more():\n    return 1\n"})
    ingest(repo)
    assert freed == [0, 1, 2]
    integrity.check()
    assert freed == [0, 1, 2, 2]
    configure(retrieval_memory_mb=0)
    integrity.check()
    write_files(repo, {"src/more.py": "def more():\n    return 2\n"})
    ingest(repo)
    assert freed == [0, 1, 2, 2]  # searches read the vector store
