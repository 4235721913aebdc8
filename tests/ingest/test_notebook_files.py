"""Notebooks that are ingested: outputs count neither as size nor as a change."""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.static import StaticCodeEmbedder
from apps.index import queries
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.mapped import lists
from apps.index.mapped.part import path_of
from apps.index.models import Root, SourceFile
from apps.ingest.verification.compare import verify_root
from tests.support.index import chunks_of
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.notebooks import PLOT, TEXT_OUTPUT, book, code, prose, written
from tests.support.parts import chunk_ids

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


def live_chunks(root: Root) -> list[StoredChunk]:
    """The chunks of a root, by path and line."""
    chunks = read_chunks((root, key) for key in chunk_ids(root)).values()
    return sorted(chunks, key=lambda chunk: (chunk.facts.path, chunk.facts.chunk_index))


@pytest.mark.parametrize("as_strings", [False, True])
def test_a_notebook_that_was_run_again_is_not_embedded_again(
    folder: Path, db: None, embedded: list[str], as_strings: bool, client: Client
) -> None:
    """Its cells are on other lines of the file."""
    book = deepcopy(SALES)
    book["cells"].append(code("def margin(rows):\n    return revenue(rows) / 2\n"))
    if as_strings:
        for cell in book["cells"]:
            cell["source"] = "".join(cell["source"])
    root = ingest(write_files(folder, {"sales.ipynb": written(book), "a.py": "x = 1\n"}))
    chunks, found = live_chunks(root), search(client, "half of the revenue")
    book["cells"][1]["outputs"] += [TEXT_OUTPUT] * 5
    write_files(folder, {"sales.ipynb": written(book)})
    embedded.clear()
    run = run_ingest(folder)
    assert (run.state, run.files, run.embedded, embedded) == ("completed", 1, len(chunks) - 1, [])
    root.refresh_from_db()
    again = live_chunks(root)
    assert [chunk.text for chunk in again] == [chunk.text for chunk in chunks]
    assert again[-1].facts.sha256 != chunks[-1].facts.sha256  # its lines are others
    assert search(client, "half of the revenue") == found
    assert verify_root(root, source=True).differences == []


def test_no_damaged_vector_is_kept(
    folder: Path, db: None, embedded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the index is as large as one whose vectors are not compared when it is mapped."""
    monkeypatch.setattr("apps.index.mapped.files.MAPPED_BYTES", 0)
    monkeypatch.setattr("apps.index.mapped.files.CHECKED_BYTES", -1)
    book = deepcopy(SALES)
    book["cells"].append(code("def margin(rows):\n    return revenue(rows) / 2\n"))
    root = ingest(write_files(folder, {"sales.ipynb": written(book)}))
    (live,) = lists.read(root).parts
    spoil(path_of(lists.folder(), live.part.name), live.part.codes.high.tobytes())
    book["cells"][1]["outputs"] += [TEXT_OUTPUT] * 5
    write_files(folder, {"sales.ipynb": written(book)})
    embedded.clear()
    assert run_ingest(folder).state == "completed"
    assert embedded


def test_vectors_of_another_length_are_told(
    folder: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(write_files(folder, {"sales.ipynb": written(SALES)}))
    book = deepcopy(SALES)
    book["cells"].append(code("def margin(rows):\n    return revenue(rows) / 2\n"))
    write_files(folder, {"sales.ipynb": written(book)})
    real = StaticCodeEmbedder.embed_documents

    def shorter(self: StaticCodeEmbedder, texts: Any) -> Any:
        return real(self, texts)[:, :128]

    monkeypatch.setattr(StaticCodeEmbedder, "embed_documents", shorter)
    run = run_ingest(folder)
    assert (run.state, run.error_code) == ("error", "MODEL_LOCKED")


def spoil(path: Path, content: bytes) -> None:
    """Change bytes of a file as a disk does: it has the time of its last write."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(content, bytes(len(content))))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def search(client: Client, query: str) -> list[tuple[str, float]]:
    """Text and score of the results."""
    answer = client.post("/tools/vector-search", {"query": query}, "application/json").json()
    return [(row["chunk"], round(row["score"], 3)) for row in answer["results"]]


def test_what_is_stored_is_what_the_folder_gives(folder: Path, db: None) -> None:
    root = ingest(write_files(folder, {"sales.ipynb": written(SALES), "a.ipynb": "{}"}))
    assert verify_root(root, source=True).differences == []


@pytest.mark.parametrize("text", ["", "\n\u2063# %% 1 [sql] @3-1\nx = (\n"])
@pytest.mark.parametrize("name", ["a.py", "a.razor"])
def test_a_file_that_begins_as_the_text_of_a_notebook_fails_no_ingest(
    folder: Path, db: None, name: str, text: str
) -> None:
    root = ingest(write_files(folder, {name: f"\u2063jupyter: python{text}"}))
    assert root.files == 1


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
