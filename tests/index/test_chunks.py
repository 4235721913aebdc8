"""Chunks by their ids: facts from parts or rows of files, texts from the text store."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db.models import F

from apps.index import chunk_ids
from apps.index.changes import check_due
from apps.index.chunks import StoredChunk, read_chunks, row_facts
from apps.index.mapped import files, lists, part
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root, SourceFile
from apps.index.records import chunk_hash
from apps.index.texts import get_texts
from apps.ingest import services
from apps.ingest.runs import sweep
from tests.support.damage import spoil
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.parts import chunk_ids as ids
from tests.support.parts import ids_of_rows, lose_parts

pytestmark = [pytest.mark.django_db, pytest.mark.door]

PATH = "src/retry.py"


@pytest.fixture(autouse=True)
def no_failure() -> Iterator[None]:
    """No test learns of another's failure."""
    check_due.clear()
    yield
    check_due.clear()


@pytest.fixture
def root(repo: Path, index: None) -> Root:
    return ingest(repo)


def read(root: Root) -> dict[str, StoredChunk]:
    rows = SourceFile.objects.filter(root=root).live()
    asked = [(root, chunk_id) for chunk_id in ids_of_rows(rows)]
    return {chunk_id: chunk for (_, chunk_id), chunk in read_chunks(asked).items()}


def file_of(root: Root, path: str = PATH) -> SourceFile:
    return SourceFile.objects.get(root=root, path=path)


def without_names(chunks: dict[str, StoredChunk]) -> dict[str, StoredChunk]:
    """The chunks as the rows of files tell of them."""
    return {
        key: chunk._replace(facts=chunk.facts._replace(symbol="", names=(), signature=""))
        for key, chunk in chunks.items()
    }


def lose_text(path: str) -> None:
    lost = SourceFile.objects.get(path=path).sha256
    get_texts().collect(lambda keys: set(keys) - {lost})


# --- ids ------------------------------------------------------------------------------------------


def test_an_id_is_that_of_a_file_and_an_index() -> None:
    file = uuid4()
    assert chunk_ids.parse(chunk_ids.chunk_id(file, 12)) == (str(file), 12)


@pytest.mark.parametrize(
    "odd",
    [
        "{0}:src/a.py:0",
        "{0}:{0}:0",
        "{0}:-1",
        "{0}:x",
        "{0}:",
        "{0}",
        "not-a-uuid-of-thirty-six-characters!:0",
        "",
        ":",
    ],
)
def test_other_ids_are_none_of_a_file(odd: str) -> None:
    assert chunk_ids.parse(odd.format(uuid4())) is None
    assert chunk_ids.parse(str(uuid4()).upper() + ":0") is None


def test_the_ids_of_a_file_are_those_that_were_written(root: Root) -> None:
    files = list(SourceFile.objects.filter(root=root, skip_reason=""))
    assert ids_of_rows(files) == ids(root)


# --- facts and texts ------------------------------------------------------------------------------


def test_chunks_have_their_facts_and_their_texts(root: Root) -> None:
    chunks = read(root)
    assert len(chunks) == root.embedded
    for key, chunk in chunks.items():
        facts = chunk.facts
        assert (facts.id, key) == (key, chunk_ids.chunk_id(facts.source_file, facts.chunk_index))
        lines = SAMPLE[facts.path].split("\n")[facts.start_line - 1 : facts.end_line]
        assert chunk.text == "\n".join(lines)
        assert chunk.hash == chunk_hash(facts.path, facts.chunk_index, chunk.text)
    (retry,) = (each.facts for each in chunks.values() if each.facts.path == PATH)
    assert "backoff_delay" in retry.names
    assert not check_due.is_set()


def test_without_the_parts_the_rows_of_files_tell_where_chunks_are(root: Root) -> None:
    expected = without_names(read(root))
    lose_parts(root)
    assert read(root) == expected
    assert row_facts(expected) == {key: chunk.facts for key, chunk in expected.items()}


def test_of_a_part_whose_facts_are_damaged_the_rows_of_files_tell_it(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_names(read(root))
    # As a large part, of which nothing is compared with its checksum when it is mapped.
    monkeypatch.setattr(files, "MAPPED_BYTES", 0)
    monkeypatch.setattr(files, "CHECKED_BYTES", -1)
    (entry,) = root.parts
    frames = part.read(lists.folder(), entry["name"]).facts.content.tobytes()
    path = part.path_of(lists.folder(), entry["name"])
    path.write_bytes(path.read_bytes().replace(frames, bytes(len(frames))))
    opened_roots.keep_only([])
    assert read(root) == expected
    assert check_due.is_set()


def test_of_parts_that_lack_files_both_are_put_together(repo: Path, root: Root) -> None:
    write_files(repo, {"src/new.py": "def later(): ...\n"})
    whole = read(ingest(repo))
    old, _ = Root.objects.get().parts
    Root.objects.update(parts=[old], revision=F("revision") + 1)
    expected = {
        key: without_names({key: chunk})[key] if chunk.facts.path == "src/new.py" else chunk
        for key, chunk in whole.items()
    }
    assert read(Root.objects.get()) == expected != whole


def test_ids_of_no_file_and_beyond_the_end_of_one_are_left_out(root: Root) -> None:
    file = file_of(root)
    asked = [f"{uuid4()}:0", f"{file.id}:0", f"{file.id}:{file.chunks}", "any", ""]
    assert set(row_facts(asked)) == {f"{file.id}:0"}
    assert set(read_chunks((root, each) for each in asked)) == {(root.id, f"{file.id}:0")}
    assert read_chunks([]) == {}


def test_spans_that_are_damaged_cost_only_the_chunks_of_their_file(
    root: Root, caplog: pytest.LogCaptureFixture
) -> None:
    expected = without_names(read(root))
    SourceFile.objects.filter(id=file_of(root).id).update(spans=b"damaged")
    assert set(read(root)) == set(expected)  # the parts know them
    lose_parts(root)
    with caplog.at_level(logging.WARNING, "codeinfo.index"):
        found = read(root)
    assert found == {key: each for key, each in expected.items() if each.facts.path != PATH}
    assert found
    (warning,) = (each for each in caplog.records if each.message == "spans unreadable")
    assert vars(warning)["context"] == {"file": PATH}


def test_a_missing_text_is_that_of_the_unchanged_file_and_has_the_stores_checked(
    root: Root,
) -> None:
    whole = read(root)
    lose_text(PATH)
    assert read(root) == whole
    assert check_due.is_set()


def test_a_missing_text_of_a_changed_file_leaves_its_chunks_out(root: Root) -> None:
    whole = read(root)
    lose_text(PATH)
    with (Path(root.path) / PATH).open("a") as file:
        file.write("# more\n")
    found = read(root)
    assert found == {key: each for key, each in whole.items() if each.facts.path != PATH}
    assert check_due.is_set()


def test_a_broken_text_store_leaves_all_out_and_has_the_stores_checked(root: Root) -> None:
    assert read(root)
    get_texts().close()
    spoil(get_texts().index.path)
    shutil.rmtree(root.path)
    assert read(root) == {}
    assert check_due.is_set()
    assert get_texts().repair()


# --- equal contents -------------------------------------------------------------------------------


def text_files() -> int:
    """Bytes of the texts on disk."""
    return sum(path.stat().st_size for path in get_texts().files() if path.suffix == ".zst")


def test_equal_files_are_stored_once_for_all_roots_and_until_the_last_is_removed(
    folder: Path, index: None
) -> None:
    files = {f"a{n}.py": f"# {uuid4()}\ndef sail_{n}(wind): ...\n" for n in range(20)}
    first = ingest(write_files(folder / "first", files))
    count, size = len(get_texts().keys()), text_files()
    second = ingest(write_files(folder / "second", {**files, "b.py": files["a0.py"]}))
    assert (len(get_texts().keys()), text_files()) == (count, size)
    texts = {each.text for each in read(first).values()}
    assert texts == {each.text for each in read(second).values()}
    keys = list(SourceFile.objects.filter(root=first).values_list("sha256", flat=True))

    services.remove(first.path)
    sweep.sweep()
    assert get_texts().missing(keys) == []
    assert {each.text for each in read(second).values()} == texts

    services.remove(second.path)
    sweep.sweep()
    assert sorted(get_texts().missing(keys)) == sorted(keys)


def test_a_file_that_changed_leaves_no_text_behind(repo: Path, root: Root) -> None:
    old = file_of(root).sha256
    write_files(repo, {PATH: "def other(): ...\n"})
    new = SourceFile.objects.live().get(root=ingest(repo), path=PATH).sha256
    sweep.sweep()
    assert get_texts().read([old, new]) == {new: "def other(): ..."}
