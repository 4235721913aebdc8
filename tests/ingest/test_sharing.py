"""Roots with equal files share parts, and each answers as if it were alone."""

import itertools
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from apps.code.chunking import digest_of
from apps.core.errors import Unavailable
from apps.index import queries
from apps.index.lexical import words
from apps.index.mapped import lists, part
from apps.index.mapped.opened import opened_roots
from apps.index.mapped.part_writer import PartWriter
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.root_directory import RootDirectory
from apps.ingest import services
from apps.ingest.runs import integrity, queue, shared, sweep
from apps.ingest.worker.supervisor import supervisor
from apps.lookup.symbols.definitions import find_definitions
from apps.lookup.symbols.references import find_references
from apps.lookup.symbols.types import SymbolQuery
from apps.retrieval.query import SearchQuery
from apps.retrieval.results import Match
from apps.retrieval.search import search
from tests.ingest.embeddings import OTHER
from tests.stand_ins.embeddings_server import EmbeddingsServer
from tests.support.ingested import ingest, ingest_alone, outdate, run_ingest, write_files
from tests.support.parts import chunk_ids, lose_parts, parts_on_disk, unlisted_parts
from tests.support.verification import verify

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


COPIES = 5
STEPS = 24
QUESTIONS = ("where is the anchor raised", "sail against the wind", "harbour_3 lamp", "reef")
NAMES = ("raise_anchor_1", "reef", "set_lamp")


def module(number: int, note: str = "") -> str:
    return (
        f'"""Harbour {number}: lamps, anchors and sails. {note}"""\n\n\n'
        f"def raise_anchor_{number}(ship: str) -> str:\n"
        f'    """Raise the anchor of a ship in harbour {number}."""\n'
        f'    return ship + " raised {number}"\n\n\n'
        f"class Harbour_{number}:\n"
        f"    def set_lamp(self, wind: int) -> int:\n"
        f'        """The lamp of harbour_{number} burns {note or "low"} against the wind."""\n'
        f"        return wind * {number}\n"
    )


FILES = {f"port/harbour_{number}.py": module(number) for number in range(8)}
FILES["README.md"] = "# Port\n\nShips sail against the wind and raise the anchor.\n"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the chunks that are written to parts from here on."""
    ids: list[str] = []
    real = PartWriter.add

    def noting(self: PartWriter, files: Any, records: Any, vectors: Any) -> None:
        ids.extend(record.id for record in records)
        real(self, files, records, vectors)

    monkeypatch.setattr(PartWriter, "add", noting)
    return ids


def copies_of(folder: Path, count: int = COPIES) -> list[Path]:
    return [write_files(folder / f"copy{number}", FILES) for number in range(count)]


# --- what an equal copy costs ---------------------------------------------------------------------


def test_an_equal_copy_is_neither_embedded_nor_written_again(
    folder: Path, index: None, embedded: list[str], written: list[str]
) -> None:
    first, *others = copies_of(folder)
    root = ingest(first)
    vectors = len(chunk_ids(root))
    assert (len(embedded), len(written)) == (vectors, vectors)
    for other in others:
        copy = ingest(other)
        assert (copy.store, copy.files, copy.chunks, copy.embedded) == (
            root.store,
            root.files,
            root.chunks,
            root.embedded,
        )
        assert queries.live_file_ids(copy) == queries.live_file_ids(root)
    assert (len(embedded), len(written)) == (vectors, vectors)
    assert len(parts_on_disk()) == 1
    assert verify(source=True) == []


def test_a_copy_of_a_branch_takes_over_what_the_branch_alone_has(
    folder: Path, index: None, embedded: list[str]
) -> None:
    """The largest root of the store has a third of its files."""
    first, branch, copy = copies_of(folder, 3)
    for number in range(6):
        for path in (branch, copy):
            (path / f"port/harbour_{number}.py").write_text(module(number, "bright"))
    root, branched = ingest(first), ingest(branch)
    vectors = len(embedded)
    assert branched.store == root.store == ingest(copy).store
    assert len(embedded) == vectors


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_a_copy_with_changes_embeds_the_changed_files_only(
    folder: Path, index: None, embedded: list[str], monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Whether all rows of the other root are read at once, or those of some files."""
    monkeypatch.setattr(shared, "READ_ALL_SHARE", share)
    first, second, third = copies_of(folder, 3)
    root = ingest(first)
    embedded.clear()
    (second / "port/harbour_0.py").write_text(module(0, "changed"))
    (second / "port/harbour_1.py").rename(second / "port/moved.py")
    assert ingest(second).store == root.store
    assert set(embedded) == {"port/harbour_0.py", "port/moved.py"}
    # A third one takes from each what the other lacks.
    embedded.clear()
    (third / "port/harbour_0.py").write_text(module(0, "changed"))
    assert ingest(third).store == root.store
    assert embedded == []
    # Later too: a file becomes what the other root has.
    embedded.clear()
    (second / "port/harbour_0.py").write_text(module(0))
    assert run_ingest(second).state == "completed"
    assert embedded == []
    assert verify(source=True) == []


def test_files_of_a_copy_are_read_once(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its folder is looked at; those that are not UTF-8, large or no other root's, again."""
    own = {"old.txt": "größe\n" * 40, "large.txt": "x = 1\n" * 20_000}
    first, second = (write_files(path, own) for path in copies_of(folder, 2))
    for path in (first, second):
        (path / "old.txt").write_text(own["old.txt"], "latin-1")
    ingest(first)
    (second / "port/harbour_0.py").write_text(module(0, "changed"))
    read = counted_reads(monkeypatch)
    copy = ingest(second)
    again = {"old.txt", "large.txt", "port/harbour_0.py"}
    assert {path for path, times in read.items() if times > 1} == again
    assert read.keys() == {*FILES, *own}
    assert copy.files == len(FILES) + 2
    assert verify(source=True) == []


@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_file_of_a_copy_that_changes_after_it_was_read_is_found_by_the_next_run(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch, keeps_time: bool
) -> None:
    """Its row has the state in which it was read, so the change is one, also where its size and
    its time are as before."""
    first, second = copies_of(folder, 2)
    ingest(first)
    changed, real = second / "port/harbour_1.py", shared.find_store

    def changing(*arguments: Any) -> Any:
        status = changed.stat()
        changed.write_text(changed.read_text().replace("burns low", "burns out"))
        assert changed.stat().st_size == status.st_size
        if keeps_time:
            os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(shared, "find_store", changing)
        copy = ingest(second)
    assert copy.store == queries.find_root(str(first)).store
    assert run_ingest(second).state == "completed"
    rows = queries.live_files(queries.find_root(str(second))).filter(path="port/harbour_1.py")
    assert [row.sha256 for row in rows] == [digest_of(changed.read_bytes())]
    assert verify(source=True) == []


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Path → how often a file below any root is opened to be read from here on."""
    reads: Counter[str] = Counter()
    real = RootDirectory.open

    def counting(self: RootDirectory, path: str) -> Any:
        reads[path] += 1
        return real(self, path)

    monkeypatch.setattr(RootDirectory, "open", counting)
    return reads


def test_roots_with_little_in_common_or_of_another_chunker_have_their_own_store(
    folder: Path, index: None
) -> None:
    root = ingest(copies_of(folder, 1)[0])
    few = {f"own/{number}.py": module(number + 50) for number in range(20)}
    few |= dict(list(FILES.items())[:4])
    assert ingest(write_files(folder / "few", few)).store != root.store
    Root.objects.update(chunker_version="1/2")
    assert ingest(write_files(folder / "later", FILES)).store != root.store


def test_equal_copies_share_their_parts(folder: Path, index: None) -> None:
    first, second, third = copies_of(folder, 3)
    (third / "port/harbour_0.py").write_text(module(0, "changed"))
    roots, counts = [], []
    for copy in (first, second, third):
        roots.append(ingest(copy))
        counts.append(len(parts_on_disk()))
    assert counts == [1, 1, 2]
    for root in roots:
        assert _ask(root, QUESTIONS[0])
    services.remove(str(first))
    sweep.sweep()
    assert len(parts_on_disk()) == 2
    for root in roots[1:]:
        services.remove(root.path)
    sweep.sweep()
    assert not parts_on_disk()


# --- removing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True], ids=["at once", "later"])
def test_a_removed_root_leaves_the_others_whole(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    if many:
        monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 1)
        monkeypatch.setattr(supervisor, "state", lambda: "ready")
    first, second = copies_of(folder, 2)
    (first / "port/own.py").write_text(module(77))
    root, other = ingest(first), ingest(second)
    answers = _all_answers(other)
    services.remove(str(first))
    # Until the sweep, the rest of a large root hides nothing of the other.
    assert _all_answers(other) == answers
    assert SourceFile.objects.filter(root_id=root.id).exists() is many
    sweep.sweep()
    assert _all_answers(other) == answers
    assert len(chunk_ids(other)) == other.embedded
    assert verify(source=True) == []
    services.remove(str(second))
    sweep.sweep()
    assert not parts_on_disk()
    assert verify() == []


# --- another chunker, another model ---------------------------------------------------------------


def test_a_new_chunker_makes_all_chunks_again_once(
    folder: Path, index: None, embedded: list[str]
) -> None:
    first, second = copies_of(folder, 2)
    root, other = ingest(first), ingest(second)
    answers = _all_answers(other)
    outdate(root)
    outdate(other)
    embedded.clear()
    assert run_ingest(first).state == "completed"
    assert len(embedded) == root.chunks
    # The other still answers from what it had.
    assert len(parts_on_disk()) == 2
    assert _all_answers(other) == answers
    assert run_ingest(second).state == "completed"
    assert len(embedded) == root.chunks
    assert len(parts_on_disk()) == 1
    assert verify(source=True) == []


def test_a_root_that_gets_another_model_leaves_the_store_and_the_others_whole(
    folder: Path, index: None, embeddings: EmbeddingsServer
) -> None:
    first, second = copies_of(folder, 2)
    (first / "port/own.py").write_text(module(77))
    roots = [ingest(first), ingest(second)]
    before = roots[0].store
    services.change_model(OTHER)
    run = queue.claim()
    assert run is not None
    queue.execute(run)
    moved, stays = sorted(Root.objects.all(), key=lambda each: each.path != run.path)
    assert (moved.model, moved.store != before) == (OTHER, True)
    assert len(chunk_ids(moved)) == moved.embedded
    # It took with it what only it named.
    assert stays.store == before
    assert len(chunk_ids(stays)) == stays.embedded
    queue.drain()
    assert {(each.model, each.store) for each in Root.objects.all()} == {(OTHER, moved.store)}
    sweep.sweep()
    assert not unlisted_parts()
    assert verify(source=True) == []


# --- damage ---------------------------------------------------------------------------------------


def test_parts_that_are_lost_damage_the_roots_that_list_them(
    folder: Path, index: None, embedded: list[str]
) -> None:
    first, second = copies_of(folder, 2)
    (second / "port/own.py").write_text(module(77))
    root, other = ingest(first), ingest(second)
    (own,) = {entry["name"] for entry in other.parts} - {entry["name"] for entry in root.parts}
    part.path_of(lists.folder(), own).unlink()
    assert _damaged() == {other.name}
    assert run_ingest(second).state == "completed"
    assert _damaged() == set()
    # What both had is embedded again once, by the first that is repaired.
    root.refresh_from_db()
    lose_parts(root)
    embedded.clear()
    assert _damaged() == {root.name, other.name}
    for folder_ in (first, second):
        assert run_ingest(folder_).state == "completed"
    sweep.sweep()
    assert _damaged() == set()
    assert len(embedded) == other.embedded
    assert verify(source=True) == []


def _damaged() -> set[str]:
    integrity.check()
    IngestRun.objects.live().delete()
    return set(queries.damages())


# --- the property ---------------------------------------------------------------------------------


class Found(NamedTuple):
    path: str
    lines: tuple[int | None, int | None]
    text: str
    score: float


def _found(match: Match) -> Found:
    score = round(match.score or 0, 3)
    return Found(match.rel_path, (match.start_line, match.end_line), match.chunk, score)


def _ask(root: Root, text: str) -> list[Found]:
    found = search(SearchQuery(text, repositories=(root.name,), limit=20)).matches
    return sorted(map(_found, found), key=lambda each: (-each.score, *each[:2]))


def _symbols(root: Root, name: str) -> list[tuple[object, ...]]:
    query = SymbolQuery.parse({"name": name, "repository": root.name})
    defined = [(each.place.path, each.start_line) for each in find_definitions(query).results]
    used = [(each.place.path, each.line, each.text) for each in find_references(query).results]
    return [*defined, *used]


def _frequencies(root: Root, text: str) -> object:
    """What the BM25 scores count."""
    mapped = opened_roots.get(root)
    return mapped.chunks, mapped.counts(list(dict.fromkeys(words(text))))


def _all_answers(root: Root) -> list[object]:
    """By words alone, and together with vectors."""
    root.refresh_from_db()
    answers: list[object] = [_ask(root, text) for text in QUESTIONS]
    answers += [_frequencies(root, text) for text in QUESTIONS]
    with patch("apps.retrieval.search._embed", side_effect=Unavailable("away")):
        answers += [_ask(root, text) for text in QUESTIONS]
    return answers + [_symbols(root, name) for name in NAMES]


def is_shared(root: Root) -> bool:
    """Whether another root lists a part that this one lists."""
    root.refresh_from_db()
    own = {entry["name"] for entry in root.parts}
    others = queries.other_roots(root)
    return any(entry["name"] in own for other in others for entry in other.parts)


class World:
    """Five copies of a repository; some are ingested."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.folders = copies_of(folder)
        self.numbers = itertools.count()

    def step(self) -> None:
        folder = self.random.choice(self.folders)
        kinds = [self.edit] * 6 + [self.reingest] * 2 + [self.remove]
        for _ in range(self.random.randint(1, 3)):
            self.random.choice(kinds)(folder)
        if self.random.random() < 0.8:
            self.reingest(folder)

    def edit(self, folder: Path) -> None:
        number = self.random.randrange(10)
        path = folder / f"port/harbour_{number}.py"
        choice = self.random.randrange(5)
        if choice == 0 and len(list(path.parent.iterdir())) > 5:
            path.unlink(missing_ok=True)
        elif choice == 1 and path.exists():
            path.rename(path.with_name(f"moved_{number}.py"))
        elif choice == 2:
            path.write_text(module(number))  # as another root may have it
        else:
            path.write_text(module(number, f"{folder.name} reef {self.random.randrange(3)}"))

    def reingest(self, folder: Path) -> None:
        assert run_ingest(folder).state in ("completed", "skipped")

    def remove(self, folder: Path) -> None:
        if Root.objects.filter(path=str(folder)).exists():
            services.remove(str(folder))

    def check(self) -> None:
        sweep.sweep()
        assert verify(source=False) == []
        assert not unlisted_parts()
        for root in Root.objects.all():
            assert len(chunk_ids(root)) == root.embedded

    def check_answers(self, root: Root) -> None:
        """A root answers as another one that was ingested from the same rows, alone."""
        files = queries.live_files(root).ingested()
        same = {row.path: (Path(root.path) / row.path).read_text() for row in files}
        alone = ingest_alone(write_files(self.folder / f"alone{next(self.numbers)}", same), "alone")
        try:
            assert not is_shared(alone)
            for found, expected in zip(_all_answers(root), _all_answers(alone), strict=True):
                assert found == expected
        finally:
            services.remove(alone.path)


@pytest.mark.parametrize("seed", [1, 2])
def test_five_copies_answer_as_if_each_were_alone_after_any_edits(
    folder: Path, index: None, seed: int
) -> None:
    world = World(folder, seed)
    roots = [ingest(each) for each in world.folders]
    assert len({root.store for root in roots}) == 1
    for number in range(STEPS):
        world.step()
        world.check()
        if number % 4 == 3:
            for root in queries.published_roots():
                run_ingest(Path(root.path), root.name)
            for root in queries.published_roots():
                world.check_answers(root)
    assert sum(is_shared(root) for root in queries.published_roots()) >= 2
