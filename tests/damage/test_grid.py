"""Each kind of file of a data folder, harmed in each way, before a start and while a server runs:
each tool answers as before, or the client is told; then all is whole again, or said to be lost.

A run takes some of all pairs. GRID=all takes all of them, which takes half an hour of processor.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.browser.product import Product
from tests.damage import asking
from tests.damage.harms import (
    KINDS,
    become_a_file,
    become_a_folder,
    file_of,
    harms_of,
)
from tests.damage.prepared import POLLS, Prepared, prepare, until

pytestmark = pytest.mark.door

# Polls after which what is lost for good counts as not coming back.
POLLS_OF_LOST = 6
# What takes the place of these is told until somebody moves it away.
MUST_BE_FOLDERS = ("folder of parts", "folder of texts", "folder of n-grams")
MUST_BE_FILES = (
    *("index of the texts", "log of that index"),
    *("secret key", "address of the server", "lock of the server"),
    *("lock of the data", "lock of changes", "lock of a freeze"),
)
# Of these one is harmed before a start in each run of the tests: a start takes four seconds.
READ_AT_A_START = ("log of the database", "part", "texts", "index of the texts", "n-grams")
# Rows of the database are nowhere else.
LOST_FOR_GOOD = ("database", "log of the database", "index of that log")
Harm = Callable[[Path], None]


def pairs(kinds: Iterable[str]) -> list[object]:
    """One harm for each of some kinds, that of its neighbour the next one; or all pairs."""
    is_whole = os.environ.get("GRID") == "all"
    found = []
    for number, kind in enumerate(KINDS if is_whole else kinds):
        harms = harms_of(kind)
        chosen = harms if is_whole else [harms[number % len(harms)]]
        found += [pytest.param(kind, harm, id=f"{kind}-{harm.__name__}") for harm in chosen]
    return found


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(tmp_path_factory.mktemp("prepared"))


def is_whole(product: Product, before: asking.Answers) -> bool:
    return not asking.health(product) and asking.ask(product) == before


def assert_holds(product: Product, prepared: Prepared, kind: str, harm: Harm) -> None:
    """Now, and in the end."""
    assert not asking.untold(product, prepared.answers)
    assert_becomes_whole(product, prepared, kind, harm)


def assert_becomes_whole(product: Product, prepared: Prepared, kind: str, harm: Harm) -> None:
    is_file = harm is become_a_file and kind in MUST_BE_FOLDERS
    if is_file or (harm is become_a_folder and kind in MUST_BE_FILES):
        path = product.data / KINDS[kind]
        assert until(lambda: str(path) in str(asking.health(product).get("disk")))
        path.rename(product.data / "moved away")
    polls = POLLS_OF_LOST if kind in LOST_FOR_GOOD else POLLS
    if until(lambda: is_whole(product, prepared.answers), polls):
        return
    told = asking.health(product)
    assert told and kind in LOST_FOR_GOOD, (asking.ask(product), told, product.log())


@pytest.mark.fault("A file of the index changes on the disk")
@pytest.mark.parametrize(("kind", "harm"), pairs([*READ_AT_A_START, *MUST_BE_FOLDERS]))
def test_a_start_after_harm_answers_as_before_or_tells(
    prepared: Prepared, tmp_path: Path, kind: str, harm: Harm
) -> None:
    data = prepared.copied(tmp_path)
    harm(file_of(data, kind))
    try:
        with prepared.serve(tmp_path) as product:
            assert_holds(product, prepared, kind, harm)
    except AssertionError as error:
        if "the server did not start" not in str(error):
            raise
        assert_refused_in_a_sentence((tmp_path / "serve.log").read_text(), kind)


def assert_refused_in_a_sentence(log: str, kind: str) -> None:
    assert "Traceback" not in log, log
    assert log.strip(), kind


class Running:
    """A server over a copy of the prepared folder, which harm after harm is done to."""

    def __init__(self, prepared: Prepared, folders: pytest.TempPathFactory) -> None:
        self._prepared, self._folders = prepared, folders
        self._stack = ExitStack()
        self.product: Product | None = None

    def whole(self) -> Product:
        """The server; another one over another copy, if it is not whole."""
        if self.product is None or not self._has_all(self.product):
            self.end()
            folder = self._folders.mktemp("running")
            self._prepared.copied(folder)
            self.product = self._stack.enter_context(self._prepared.serve(folder))
            product = self.product
            assert until(lambda: is_whole(product, self._prepared.answers))
        return self.product

    def _has_all(self, product: Product) -> bool:
        """Whether it is whole, and has all files: it may have some of them open."""
        there = all(any(product.data.glob(pattern)) for pattern in KINDS.values())
        return there and is_whole(product, self._prepared.answers)

    def end(self) -> None:
        self.product = None
        self._stack.close()


@pytest.fixture(scope="module")
def server(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(prepared, tmp_path_factory)
    yield made
    made.end()


@pytest.mark.fault("A file of the index changes on the disk")
@pytest.mark.parametrize(("kind", "harm"), pairs(KINDS))
def test_a_running_server_answers_as_before_or_tells(
    prepared: Prepared, server: Running, kind: str, harm: Harm
) -> None:
    product = server.whole()
    harm(file_of(product.data, kind))
    assert_holds(product, prepared, kind, harm)
