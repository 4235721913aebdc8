"""Notebooks that are ingested: outputs count neither as size nor as a change."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from apps.index import queries
from apps.index.models import Root, SourceFile
from apps.ingest.verification.compare import verify_root
from tests.support.index import chunks_of
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.notebooks import PLOT, TEXT_OUTPUT, book, code, prose, written

pytestmark = [pytest.mark.django_db, pytest.mark.door]

SALES = book(
    prose("# Sales\n"), code("def revenue(rows):\n    return sum(rows)\n", PLOT, TEXT_OUTPUT)
)


def skipped(folder: Path) -> dict[str, str]:
    ingest(folder)
    rows = SourceFile.objects.exclude(skip_reason="")
    return dict(rows.values_list("path", "skip_reason"))


def test_other_outputs_are_no_change(folder: Path, db: None, embedded: list[str]) -> None:
    root = ingest(write_files(folder, {"sales.ipynb": written(SALES)}))
    again = deepcopy(SALES)
    again["cells"][1]["execution_count"] = 12
    again["cells"][1]["outputs"][0]["data"]["image/png"] = "another plot"
    write_files(folder, {"sales.ipynb": written(again)})
    embedded.clear()
    assert run_ingest(folder).message == "No changes detected"
    assert embedded == []
    (row,) = queries.live_files(root)
    assert row.size == (folder / "sales.ipynb").stat().st_size
    again["cells"][1]["source"][1] = "    return max(rows)\n"
    write_files(folder, {"sales.ipynb": written(again)})
    assert run_ingest(folder).state == "completed"
    assert "max(rows)" in " ".join(chunk.text for chunk in chunks_of(Root.objects.get()))


def test_what_is_stored_is_what_the_folder_gives(folder: Path, db: None) -> None:
    root = ingest(write_files(folder, {"sales.ipynb": written(SALES), "a.ipynb": "{}"}))
    assert verify_root(root, source=True).differences == []


def test_only_cells_count_as_size(folder: Path, db: None, configure: Any) -> None:
    configure(ingest_max_file_bytes=2_000)
    long = book(code("x = 1  # of many lines\n" * 200))
    files = {"plots.ipynb": written(SALES), "long.ipynb": written(long)}
    assert skipped(write_files(folder, files)) == {"long.ipynb": "Too large: over 2 kB"}


def test_no_notebook_is_read_that_is_very_large(
    folder: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = "apps.ingest.discovery.discovery.MAX_NOTEBOOK_BYTES"
    monkeypatch.setattr(configured, len(written(SALES)) - 1)
    large = written(book(code("x = 1\n", PLOT, PLOT, PLOT, PLOT, PLOT, PLOT, PLOT)))
    files = {"plots.ipynb": large, "a.py": "x = 1\n"}
    assert skipped(write_files(folder, files)) == {"plots.ipynb": "Too large: over 1 MB"}


def test_a_secret_in_an_output_keeps_no_notebook_out(folder: Path, db: None) -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIE' * 16}\n{'vAIB' * 16}\n{'abcd' * 16}\n"
    key += "-----END RSA PRIVATE KEY-----\n"
    files = {
        "printed.ipynb": written(book(code("print(key)\n", {"text": [key]}))),
        "pasted.ipynb": written(book(code(f"key = '''\n{key}'''\n"))),
    }
    assert skipped(write_files(folder, files)) == {"pasted.ipynb": "Secret"}
