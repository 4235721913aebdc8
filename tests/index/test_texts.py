"""The text store: texts are read back, stored once, deleted when no row names them."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from apps.index.texts import TextStore
from apps.index.texts import store as store_module
from apps.index.texts.segments import BLOCK_BYTES, Segments
from apps.ingest.runs.job import RunCancelled
from tests.index.texts import (
    Texts,
    folder,
    key_of,
    keyed,
    named,
    noise,
    reopened,
    segments_in,
    texts,
)

__all__ = ["folder", "reopened", "texts"]


# --- adding and reading ---------------------------------------------------------------------------


def test_texts_are_read_back(texts: TextStore, reopened: Callable[[], TextStore]) -> None:
    large = noise(BLOCK_BYTES * 3)
    added = keyed(
        "",
        "x",
        'def größe():\n\treturn "日本\ufffd語 😀"\r\n\u2028',
        "\ufeff",
        large,
        large[::-1],
        *(f"def small_{n}(): ...\n" for n in range(3_000)),
    )
    texts.add(added)
    assert texts.read([*added, key_of("unknown")]) == added
    assert reopened().read(added) == added
    assert len(texts.keys()) == len(added)
    assert texts.missing(added) == []


def test_many_small_texts_share_a_block(texts: TextStore, folder: Path) -> None:
    added = keyed(*(f"def small_{n}(wind, tide):\n    return {n}\n" for n in range(1_500)))
    texts.add(added)
    (segment,) = segments_in(folder)
    assert segment.stat().st_size < sum(map(len, added.values())) / 8
    assert len({place.block for place in texts.index.places(list(added)[:500]).values()}) <= 2


def test_parts_of_texts_of_any_size_are_read_alone(texts: TextStore) -> None:
    sizes = (0, 9, 2_000, 16_000, 40_000, 90_000)
    added = keyed(*(noise(size, size) for size in sizes))
    texts.add(added)
    whole = {key: text.encode() for key, text in added.items()}
    chance = random.Random(3)

    def read(parts: dict[str, list[tuple[int, int]]]) -> list[bytes | None]:
        places = texts.places(parts)
        return Segments(texts.folder).read_parts(
            [
                (places[key].block, [(places[key].start + a, places[key].start + b) for a, b in of])
                for key, of in parts.items()
            ]
        )

    for _ in range(30):
        parts: dict[str, list[tuple[int, int]]] = {}
        for key in chance.sample(list(added), 4):
            a, b, c, d = sorted(chance.choices(range(len(whole[key]) + 1), k=4))
            parts[key] = [(a, b), (c, d)]
        expected = [b"".join(whole[key][a:b] for a, b in of) for key, of in parts.items()]
        assert read(parts) == expected
        texts.close()
    assert texts.read(added) == added
    assert read({key: [(0, len(text))] for key, text in whole.items()}) == list(whole.values())


def test_an_empty_text_alone_is_read_back(
    texts: TextStore, reopened: Callable[[], TextStore]
) -> None:
    texts.add(keyed(""))
    assert reopened().read(keyed("")) == keyed("")
    assert texts.missing(keyed("")) == []


def test_a_text_is_stored_once(texts: TextStore, folder: Path) -> None:
    texts.add(keyed("a", noise(9_000)))
    texts.sync()
    size = sum(path.stat().st_size for path in segments_in(folder))
    texts.add(keyed(noise(9_000), "a"))
    texts.sync()
    assert sum(path.stat().st_size for path in segments_in(folder)) == size
    assert len(texts.keys()) == 2


def test_a_store_that_does_not_exist_is_empty(texts: TextStore, folder: Path) -> None:
    asked = keyed("a", "b")
    assert texts.read(asked) == {}
    assert texts.missing(asked) == list(asked)
    assert (len(texts.keys()), texts.collect(named())) == (0, 0)
    texts.sync()
    assert not texts.repair()
    assert not folder.exists()


def test_a_closed_store_opens_again(texts: TextStore) -> None:
    texts.add(keyed("a"))
    texts.close()
    assert texts.read(keyed("a")) == keyed("a")
    texts.add(keyed("b"))
    assert texts.read(keyed("a", "b")) == keyed("a", "b")


def test_a_segment_is_closed_at_its_size(
    texts: TextStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SEGMENT_BYTES", 50_000)
    added = keyed(*(noise(40_000, seed) for seed in range(10)))
    for key, text in added.items():
        texts.add({key: text})
    assert 2 < len(segments_in(folder)) < 10
    assert texts.read(added) == added


def test_unneeded_blocks_leave_memory(texts: TextStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.index.texts.segments.CACHED_BYTES", 3 * BLOCK_BYTES)
    monkeypatch.setattr("apps.index.texts.segments.OPEN_SEGMENTS", 2)
    added = keyed(*(noise(BLOCK_BYTES, seed) for seed in range(9)))
    for key, text in added.items():
        texts.add({key: text})
        texts.sync()
    for _ in range(2):
        assert texts.read(added) == added
        cached = sum(map(len, texts.segments.blocks.values()))
        assert texts.segments.cached == cached <= 3 * BLOCK_BYTES + max(map(len, added.values()))
        assert len(texts.segments.files) <= 2


# --- collecting -----------------------------------------------------------------------------------


def test_texts_that_no_row_names_are_deleted(texts: TextStore) -> None:
    kept = keyed(*(f"kept {n}" for n in range(700)))
    dead = keyed(*(f"dead {n}" for n in range(800)))
    texts.add(kept | dead)
    assert texts.collect(named(kept)) == 800
    assert texts.read(kept | dead) == kept
    assert sorted(texts.missing(kept | dead)) == sorted(dead)
    assert len(texts.keys()) == 700
    assert texts.collect(named(kept)) == 0


def test_an_emptied_store_has_no_segments(texts: TextStore, folder: Path) -> None:
    texts.add(keyed("a", "b"))
    texts.collect(named())
    assert segments_in(folder) == []
    texts.add(keyed("a"))
    assert texts.read(keyed("a", "b")) == keyed("a")


def test_a_sparse_segment_is_written_again_and_a_dense_one_is_not(
    texts: TextStore, folder: Path
) -> None:
    sparse, dense = ([noise(9_000, n + base) for n in range(10)] for base in (0, 100))
    for group in (sparse, dense):
        texts.add(keyed(*group))
        texts.sync()
    before = segments_in(folder)
    size = sum(path.stat().st_size for path in before)
    kept = keyed(*sparse[:4], *dense[:6])
    assert texts.collect(named(kept)) == 10
    after = segments_in(folder)
    assert len(set(before) & set(after)) == 1
    assert len(after) == 2
    assert sum(path.stat().st_size for path in after) < 0.8 * size
    assert texts.read(kept) == kept


def test_many_small_segments_are_merged(
    texts: TextStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_SMALL", 5)
    monkeypatch.setattr(store_module, "SMALL_BYTES", 20_000)
    added: Texts = {}
    for seed in range(4):
        added |= (new := keyed(noise(2_000, seed)))
        texts.add(new)
        texts.sync()
    added |= (large := keyed(noise(60_000)))
    texts.add(large)
    texts.sync()
    texts.collect(named(added))
    assert len(segments_in(folder)) == 5  # not enough small ones yet
    added |= (last := keyed(noise(2_000, 99)))
    texts.add(last)
    texts.collect(named(added))
    assert len(segments_in(folder)) == 2
    assert texts.read(added) == added
    assert texts.missing(added) == []


def test_a_collection_that_is_cancelled_loses_nothing(
    texts: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_SMALL", 2)
    monkeypatch.setattr(store_module, "KEYS_AT_ONCE", 10)
    kept = keyed(*(f"kept {n}" for n in range(40)))
    for part in (kept, keyed(*(f"dead {n}" for n in range(40)))):
        texts.add(part)
        texts.sync()
    for steps in range(20):
        left = iter(range(steps))

        def check(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise RunCancelled

        with suppress(RunCancelled):
            texts.collect(named(kept), check)
        assert texts.read(kept) == kept
    assert len(texts.keys()) == 40


class Life:
    """Random adds, deletions and collections, with what must be there at any time."""

    def __init__(self, texts: TextStore, seed: int) -> None:
        self._dice = random.Random(seed)
        self._texts = texts
        self._made = 0
        self.always = self._some(40)
        self.live = dict(self.always)
        texts.add(self.live)

    def step(self) -> None:
        steps = (self.add, self.add, self.drop, self.collect, self._texts.sync, self._texts.close)
        self._dice.choice(steps)()
        assert self._texts.read(self.live) == self.live

    def add(self) -> None:
        new = self._some(self._dice.randint(1, 12))
        self.live |= new
        self._texts.add(new)

    def drop(self) -> None:
        """Half of the texts that may go."""
        may_go = sorted(self.live.keys() - self.always.keys())
        for key in self._dice.sample(may_go, len(may_go) // 2):
            del self.live[key]

    def collect(self) -> None:
        self._texts.collect(named(self.live))
        assert len(self._texts.keys()) == len(self.live)

    def _some(self, count: int) -> Texts:
        longest = self._dice.choice([20, 300, 3_000])
        self._made += count
        seeds = range(self._made, self._made + count)
        return keyed(*(noise(self._dice.randint(0, longest), seed) for seed in seeds))


def read_until(done: threading.Event, store: TextStore, always: Texts, seed: int) -> int:
    """Return how often some of the texts were read, all of them each time."""
    dice, rounds = random.Random(seed), 0
    while not done.is_set():
        some = dice.sample(sorted(always), 5)
        assert store.read(some) == {key: always[key] for key in some}
        assert store.missing(some) == []
        rounds += 1
    return rounds


@pytest.mark.parametrize("seed", range(6))
def test_readers_see_every_text_whatever_is_added_and_collected(
    texts: TextStore,
    folder: Path,
    reopened: Callable[[], TextStore],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    small = {"BLOCK_BYTES": 500, "SEGMENT_BYTES": 5_000, "SMALL_BYTES": 1_500, "MAX_SMALL": 3}
    for name, value in {**small, "KEYS_AT_ONCE": 7}.items():
        monkeypatch.setattr(store_module, name, value)
    life, done = Life(texts, seed), threading.Event()
    # Two threads of this process, and two that see the store as another process does.
    stores = (texts, texts, reopened(), reopened())
    with ThreadPoolExecutor(len(stores)) as threads:
        readers = [
            threads.submit(read_until, done, store, life.always, number)
            for number, store in enumerate(stores)
        ]
        try:
            for _ in range(40):
                life.step()
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    life.collect()
    known = {f"{segment:x}.zst" for segment in _known_segments(texts)}
    assert {path.name for path in segments_in(folder)} == known
    assert texts.read(life.live) == life.live


def _known_segments(texts: TextStore) -> list[int]:
    with texts.index.reading() as database:
        assert database is not None
        return [number for (number,) in database.execute("SELECT id FROM segment")]


# --- copying --------------------------------------------------------------------------------------


def test_a_copy_reads_the_same(texts: TextStore, tmp_path: Path) -> None:
    added = keyed("", "größe", noise(BLOCK_BYTES * 2), *(f"text {n}" for n in range(100)))
    for key, text in added.items():
        texts.add({key: text})
        texts.sync()
    target = tmp_path / "copy"
    target.mkdir()
    checks: list[None] = []
    texts.copy(target, lambda: checks.append(None))
    texts.collect(named())
    copy = TextStore(target)
    assert copy.read(added) == added
    assert copy.missing(added) == []
    copy.add(keyed("more"))
    assert copy.read(keyed("more")) == keyed("more")
    copy.close()
    assert len(checks) == len(added)


def test_a_copy_of_an_empty_store_is_empty(texts: TextStore, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    texts.copy(target)
    assert list(target.iterdir()) == []


def test_what_another_process_has_merged_is_not_kept_open(
    folder: Path, reopened: Callable[[], TextStore]
) -> None:
    """Otherwise it keeps its room on the disk."""
    reader = reopened()
    writer = TextStore(folder)
    for number in range(3):
        kept = keyed(f"round {number}")
        writer.add(kept)
        writer.sync()
        assert reader.read(kept) == kept
        if number:
            assert len(reader.segments.files) == 1
        writer.collect(named({}))
    writer.close()
