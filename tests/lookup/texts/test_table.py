"""The table of files that Grep and ListFiles use, from one generation to the next."""

from pathlib import Path

import pytest

from apps.index import queries
from apps.index.models import Root
from apps.lookup.texts.table import FileTable, file_table
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES = {f"{name}.py": f"def {name}(): ...\n" for name in "abcd"}


def is_as_published(table: FileTable, root: Root) -> bool:
    rows = queries.live_files(root).ingested().values_list("path", "sha256")
    return [(file.path, file.sha256) for file in table.files] == sorted(rows)


def test_only_new_rows_are_read(folder: Path) -> None:
    """Also where a file was replaced by another one, and where one is skipped now."""
    first = file_table(ingest(write_files(folder, FILES)))
    write_files(folder, {"0.py": "zero = 0\n", "b.py": "def other(): ...\n", "d.py": b"\0\1"})
    root = ingest(folder)
    second = file_table(root)
    assert is_as_published(second, root) and len(second.files) == 4
    assert (second.files[1] is first.files[0], second.files[3] is first.files[2]) == (True, True)
    (folder / "c.py").rename(folder / "e.py")
    root = ingest(folder)
    assert is_as_published(file_table(root), root)


def test_an_earlier_generation_that_is_asked_for_later(folder: Path) -> None:
    root = ingest(write_files(folder, FILES))
    later = ingest(write_files(folder, {"e.py": "def e(): ...\n"}))
    assert len(file_table(later).files) == 5
    assert len(file_table(root).files) == 4
    assert len(file_table(later).files) == 5
