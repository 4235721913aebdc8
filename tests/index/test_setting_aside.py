"""What is broken is moved away in one go, whatever interrupts it, and nothing of it is lost."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.core.errors import Unavailable
from apps.index.vectors import aside
from apps.index.vectors.chroma import BROKEN
from apps.index.vectors.process import Embedded
from tests.house.sources import HOME

INDEXES = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(3)]
Fails = Callable[[str, int], None]
KILLED = """
import os, signal, sys
from pathlib import Path
from apps.index.vectors import aside
move, left = os.rename, int(sys.argv[2])
def rename(*args, **options):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return move(*args, **options)
os.rename = rename
aside.set_store_aside(Path(sys.argv[1]))
"""


@pytest.fixture
def chroma(folder: Path) -> Path:
    """The folder of a store, as far as its names go."""
    made = folder / "chroma"
    for index in INDEXES:
        (made / index).mkdir(parents=True)
        (made / index / "data_level0.bin").write_text(index)
    (made / aside.DATABASE).write_text("broken")
    (made / "chroma.lock").touch()
    return made


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Fails:
    """Let moves whose target has a name like this fail so."""

    def arrange(target: str, code: int) -> None:
        move = os.rename

        def rename(source: Path, to: Path) -> None:
            if target in str(to):
                raise OSError(code, os.strerror(code), str(source))
            move(source, to)

        monkeypatch.setattr(os, "rename", rename)

    return arrange


def kept_in(place: Path) -> list[list[str]]:
    """The names of what was set aside, by folder."""
    return [sorted(os.listdir(each)) for each in sorted(place.glob("chroma.broken-*"))]


def start(chroma: Path) -> None:
    """As a server does: a store that is broken is replaced."""
    try:
        Embedded(chroma).close()
    except Unavailable as error:
        assert error.code == BROKEN
        aside.set_store_aside(chroma)
        Embedded(chroma).close()


@pytest.mark.fault("Vectors are damaged")
@pytest.mark.door
@pytest.mark.parametrize("moves", range(5))
def test_a_set_aside_that_is_killed_is_finished_by_the_next_start_in_one_folder(
    chroma: Path, moves: int
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, chroma, str(moves)], cwd=HOME, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    start(chroma)
    assert kept_in(chroma.parent) == [[*INDEXES, aside.DATABASE]]
    assert not any(aside.is_index_folder(entry) for entry in chroma.iterdir())


@pytest.mark.fault("Vectors are damaged")
def test_what_is_set_aside_from_a_mount_of_its_own_stays_in_it(chroma: Path, fails: Fails) -> None:
    fails(str(chroma.parent / "chroma.broken-"), errno.EXDEV)
    target = aside.set_store_aside(chroma)
    assert target and target.parent == chroma
    assert kept_in(chroma) == [[*INDEXES, aside.DATABASE]]
    # It is not taken for a part of the next store.
    assert aside.set_store_aside(chroma) is None


@pytest.mark.fault("Vectors are damaged")
def test_what_cannot_be_moved_is_an_error_and_all_stays_where_it_was(
    chroma: Path, fails: Fails
) -> None:
    before = sorted(os.listdir(chroma))
    fails(INDEXES[1], errno.EBUSY)
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be set aside: .* busy"):
            aside.set_store_aside(chroma)
        assert sorted(os.listdir(chroma)) == before
        assert os.listdir(chroma.parent) == ["chroma"]
