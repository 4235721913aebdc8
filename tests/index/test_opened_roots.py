"""A process maps what a root lists: once, never an older list, and again what was lost."""

from dataclasses import replace

import pytest

from apps.index.mapped import lists
from apps.index.mapped.opened import OpenedRoots
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from tests.support.mapped import mapped_of, unit_vectors


class Disk:
    """Where lists are mapped from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mapped: list[tuple[str, int, int]] = []
        self.lost: tuple[str, ...] = ()
        monkeypatch.setattr(lists, "opened", self._opened)

    def _opened(self, root: Root) -> MappedRoot:
        self.mapped.append((root.name, root.generation, root.revision))
        return replace(mapped_of(unit_vectors(1, 8), root=root), lost=self.lost)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_list_is_mapped_once(disk: Disk) -> None:
    opened, root = OpenedRoots(), Root(name="a", generation=1)
    assert opened.get(root) is opened.get(Root(id=root.id, name="a", generation=1))
    assert disk.mapped == [("a", 1, 0)]


@pytest.mark.parametrize("later", [(2, 0), (1, 1)])
def test_a_search_that_began_before_does_not_bring_an_older_list_back(
    disk: Disk, later: tuple[int, int]
) -> None:
    opened, old = OpenedRoots(), Root(name="a", generation=1)
    new = Root(id=old.id, name="a", generation=later[0], revision=later[1])
    opened.get(old)
    opened.get(new)
    assert opened.get(old).version == (1, 0)
    assert opened.get(new).version == later
    assert disk.mapped == [("a", 1, 0), ("a", *later), ("a", 1, 0)]


def test_what_was_lost_is_mapped_again_when_it_is_back(disk: Disk) -> None:
    opened, root = OpenedRoots(), Root(name="a", generation=1)
    disk.lost = ("gone",)
    assert opened.get(root).lost == opened.get(root).lost == ("gone",)
    disk.lost = ()
    assert opened.get(root).lost == ()
    opened.get(root)
    assert len(disk.mapped) == 3


def test_roots_that_are_removed_are_unmapped(disk: Disk) -> None:
    opened, stays, removed = OpenedRoots(), Root(name="a"), Root(name="b")
    opened.get(stays)
    opened.get(removed)
    opened.keep_only([stays.id])
    opened.get(stays)
    opened.get(removed)
    assert [name for name, _, _ in disk.mapped] == ["a", "b", "b"]
