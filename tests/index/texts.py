"""Texts, and the stores that a test keeps them in."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from apps.index.texts import TextStore

Texts = dict[str, str]


def key_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def keyed(*texts: str) -> Texts:
    return {key_of(text): text for text in texts}


def noise(chars: int, seed: int = 7) -> str:
    """A text that hardly compresses."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyzß港😀 \n", k=chars))


def named(*groups: Texts) -> Callable[[Sequence[str]], Collection[str]]:
    """As the rows of a database that name these texts."""
    keys = {key for group in groups for key in group}
    return lambda asked: keys.intersection(asked)


def segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.zst"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "texts"


@pytest.fixture
def texts(folder: Path) -> Iterator[TextStore]:
    made = TextStore(folder)
    yield made
    made.close()


@pytest.fixture
def reopened(folder: Path) -> Iterator[Callable[[], TextStore]]:
    """As another process sees the store: it has read nothing yet."""
    made: list[TextStore] = []

    def reopen() -> TextStore:
        made.append(TextStore(folder))
        return made[-1]

    yield reopen
    for each in made:
        each.close()
