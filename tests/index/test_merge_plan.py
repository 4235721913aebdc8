"""Parts are merged so that they stay few, mostly live, and are seldom written again."""

from collections.abc import Iterator, Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.index.mapped.merge_plan import FAN_IN, FULL_ROWS, PartSize, plan
from apps.index.mapped.part import PART_ROWS
from tests.support.random_parts import Sources, piece

# Rows are in one of these: 1 to 3, 4 to 15, … 16,384 to 65,535.
CLASSES = 8


class Repository:
    """The sizes of the parts of a root, as runs change them and merging does."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.parts: list[PartSize] = []
        self.added = self.killed = self.copied = 0

    def run(self, rows: int, share: float) -> None:
        """Add some rows. Of some parts, a share of the rows dies."""
        for number, part in enumerate(self.parts):
            dead = round(self.random.random() * share * part.live)
            self.parts[number] = part._replace(live=part.live - dead)
            self.killed += dead
        self.parts += self._cut(rows)
        self.added += rows

    def merge(self) -> None:
        for _ in range(100):
            groups = plan(self.parts)
            if not groups:
                return
            self._check(groups)
            merged = {number for group in groups for number in group}
            parts = [part for number, part in enumerate(self.parts) if number not in merged]
            for group in groups:
                live = sum(self.parts[number].live for number in group)
                self.copied += live
                parts += self._cut(live)
            self.parts = parts
        raise AssertionError("merging does not end")

    def _check(self, groups: Sequence[Sequence[int]]) -> None:
        numbers = [number for group in groups for number in group]
        assert len(numbers) == len(set(numbers))
        for number in numbers:
            part = self.parts[number]
            assert part.rows < FULL_ROWS or part.live < PART_ROWS * 2 / 3, "a full part"

    def _cut(self, rows: int) -> Iterator[PartSize]:
        """What `merged` makes of so many live rows."""
        while rows:
            size = rows if rows <= PART_ROWS else self.random.randint(FULL_ROWS, PART_ROWS)
            yield PartSize(size, size)
            rows -= size


runs = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 20), st.integers(1, 2_000), st.integers(0, 300_000)),
        st.sampled_from((0.0, 0.0, 0.01, 0.4, 1.0)),
    ),
    min_size=1,
    max_size=80,
)


@settings(max_examples=150)
@given(runs, st.integers(0, 1 << 32))
def test_parts_stay_few_and_mostly_live_whatever_runs_do(
    drawn: list[tuple[int, float]], seed: int
) -> None:
    repository = Repository(seed)
    for rows, share in drawn:
        repository.run(rows, share)
        repository.merge()
        parts = repository.parts
        assert len(parts) <= sum(part.rows for part in parts) / PART_ROWS + 32
        assert all(part.live and 3 * (part.rows - part.live) <= part.rows for part in parts)
    # A merge raises the class of what it copies, except for the rest beyond full parts. Deaths
    # lower the class of a part: few of them once in each class, otherwise a third of the part.
    assert repository.copied <= 2 * CLASSES * (repository.added + repository.killed)


@given(st.lists(st.floats(0, 15.9), min_size=25, max_size=25))
def test_of_25_parts_that_are_not_full_some_are_merged(sizes: list[float]) -> None:
    rows = [min(int(2**size), FULL_ROWS - 1) for size in sizes]
    assert plan([PartSize(each, each) for each in rows])


def test_equal_small_runs_copy_each_row_once_in_a_class() -> None:
    repository = Repository(1)
    for _ in range(4_000):
        repository.run(50, 0.0)
        repository.merge()
    # From 50 rows there are six classes, up to full parts.
    assert repository.copied <= 6 * repository.added
    assert len(repository.parts) <= repository.added / PART_ROWS + 18


def test_a_full_part_is_left_alone_until_a_third_of_it_is_dead() -> None:
    full = PartSize(PART_ROWS, PART_ROWS)
    worn = full._replace(live=PART_ROWS * 2 // 3)
    assert plan([full, full, full, full, full]) == []
    assert plan([full, worn._replace(live=worn.live + 1)]) == []
    assert plan([full, worn]) == [[1]]


def test_a_file_without_chunks_counts_as_a_row() -> None:
    sources = Sources(Random(3))
    files = [sources.source(0, 2), sources.source(0, 1), sources.source(0, 0)]
    size = PartSize.of(piece(files, [True, False, True]))
    assert size == PartSize(rows=2, live=1)
    assert plan([size]) == [[0]]
    assert PartSize.of(piece([*files, sources.source(40, 1)], [True] * 4)).live > 2


def test_a_part_without_anything_live_is_merged_into_nothing() -> None:
    nothing = PartSize.of(piece([Sources(Random(3)).source(0, 0)], [True]))
    assert nothing == PartSize(0, 0)
    assert plan([nothing, PartSize(5, 5), PartSize(5, 0)]) == [[0], [2]]


def test_a_part_of_an_earlier_version_is_not_merged() -> None:
    """Its repository is ingested again, which makes a part of this version."""
    assert not plan([PartSize(1, 1, is_earlier=True)] * FAN_IN + [PartSize(9, 0, is_earlier=True)])
