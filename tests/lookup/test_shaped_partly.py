"""Questions with a shape about files that there was no time to read."""

from pathlib import Path

import pytest

from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingest, write_files

__all__ = ["post"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES: dict[str, str | bytes] = {
    "base.py": "class SluiceGate:\n    def open_gate(self):\n        return 1\n",
    **{
        f"gate_{n}.py": f"from base import SluiceGate\n\n\nclass Gate{n}(SluiceGate):\n"
        f"    def lower_{n}(self):\n        return self.open_gate()\n"
        for n in range(12)
    },
}


def test_types_that_were_not_read_are_said_to_be_missing(
    folder: Path, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(write_files(folder / "sluice", FILES))
    monkeypatch.setattr("apps.lookup.relations.implementations.SECONDS", 0.0)
    _, body = post("vector-search", query="What implements `SluiceGate`?")
    assert "Not all types" in " ".join(body["answer"]["notes"]), body["answer"]
