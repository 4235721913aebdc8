"""Texts of removed repositories are deleted from the disk."""

from pathlib import Path

import pytest

from apps.core.config import config
from apps.index.grams import get_grams
from apps.index.texts import get_texts
from apps.ingest import services
from apps.ingest.runs import sweep
from apps.ingest.runs.job import RunCancelled
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def segments() -> list[Path]:
    return sorted((config().data_dir / "texts").glob("*.zst"))


def has_bytes_of(word: str) -> bool:
    """Whether any text of the store has the word."""
    with get_texts().index.reading() as database:
        assert database is not None
        keys = [key.hex() for (key,) in database.execute("SELECT sha256 FROM text")]
    return any(word in text for text in get_texts().read(keys).values())


def test_nothing_of_a_removed_repository_stays_on_the_disk(folder: Path, index: None) -> None:
    sweep.sweep()
    ingest(write_files(folder / "kept", {"a.md": "# A lighthouse\n"}))
    secret = ingest(write_files(folder / "secret", {"b.md": "# The treasure of the island\n"}))
    assert has_bytes_of("treasure")
    services.remove(secret.path)
    assert sweep.due.is_set()
    assert not has_bytes_of("treasure") and has_bytes_of("lighthouse")
    sweep.sweep()
    assert len(segments()) == 1


def test_n_grams_are_built_with_the_texts_and_again_if_they_are_lost(
    folder: Path, index: None
) -> None:
    ingest(write_files(folder / "kept", {"a.md": "# A lighthouse\n", "b.md": "# A harbour\n"}))
    keys = get_texts().keys()
    assert len(keys) == 2 and get_grams().missing(keys) == []
    for segment in get_grams().segments():
        segment.path.unlink()
    assert len(get_grams().missing(keys)) == 2
    sweep.maintain_grams()
    assert get_grams().missing(keys) == []


def test_an_interrupted_build_of_n_grams_is_due_again(folder: Path, index: None) -> None:
    ingest(write_files(folder / "kept", {"a.md": "# A lighthouse\n"}))
    for segment in get_grams().segments():
        segment.path.unlink()
    sweep.due.clear()

    def check() -> None:
        raise RunCancelled

    with pytest.raises(RunCancelled):
        sweep.maintain_grams(check)
    assert sweep.due.is_set()
