"""Compares the live rows of a root with its folder: files, contents, chunks and definitions."""

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

from apps.code.values import ChunkedFile, Symbol
from apps.core.errors import CodeinfoError, InvalidInput, NotFound
from apps.core.values.slices import slices
from apps.embedding.catalogue import get_embedder
from apps.index import problems
from apps.index.models import Root
from apps.index.parsing import Chunker
from apps.index.root_directory import digest_at, read_content
from apps.index.spans import span_of
from apps.index.symbols import outline_of
from apps.index.types import Check
from apps.ingest.discovery.discovery import discover
from apps.ingest.runs.batches import fitted
from apps.ingest.runs.chunker_version import makes_the_same_chunks
from apps.ingest.types import Discovery
from apps.ingest.verification.rows import FileRow
from apps.ingest.verification.types import RootComparison

# Files that are read and parsed together.
FILES_AT_ONCE = 64


def compare(root: Root, live: Sequence[FileRow], found: RootComparison, check: Check) -> None:
    """Compare the rows of a root with its folder. Reads all files."""
    try:
        folder = discover(Path(root.path), check=check, plain=root.plain_folder)
    except NotFound as error:
        found.add("folder_missing", error.message)
        return
    except CodeinfoError as error:
        found.add("folder_unreadable", error.message)
        return
    _compare_names(live, folder, found)
    eligible = {candidate.path for candidate in folder.files}
    rows = [row for row in live if not row.skip_reason and row.path in eligible]
    same = _compare_contents(root, rows, found, check)
    if any(difference.kind == "index_unreadable" for difference in found.differences):
        found.notes.append("Files were not cut again: the index cannot be read.")
    elif same:
        _compare_chunks(root, same, found, check)


def _compare_names(live: Sequence[FileRow], folder: Discovery, found: RootComparison) -> None:
    eligible = {candidate.path for candidate in folder.files}
    skipped = {item.path: item.reason for item in folder.skipped}
    ingested = [row.path for row in live if not row.skip_reason]
    gone = [path for path in ingested if path not in eligible]
    missing = [path for path in gone if path not in skipped]
    left_out = [f"{path} ({skipped[path]})" for path in gone if path in skipped]
    unsolved = [f"{row.path} ({row.problem})" for row in live if not _is_complete(row.problem)]
    new = sorted(eligible.difference(ingested))
    found.add_files("file_missing", "files that are no longer in the folder", missing)
    found.add_files("file_changed", "files that would be left out today", left_out)
    found.add_files("file_new", "files that are not in the index", new)
    found.add_files("file_problem", "files that the last run had trouble with", unsolved)


def _compare_contents(
    root: Root, rows: Sequence[FileRow], found: RootComparison, check: Check
) -> list[FileRow]:
    """The rows whose files have the content that was ingested."""
    same, changed = [], []
    for row in rows:
        check()
        digest = digest_at(Path(root.path), row.path, row.encoding)
        found.files += bool(digest)
        if digest == row.sha256:
            same.append(row)
        else:
            changed.append(row.path)
    found.add_files("file_changed", "files with other content than was ingested", changed)
    return same


def _compare_chunks(
    root: Root, rows: Sequence[FileRow], found: RootComparison, check: Check
) -> None:
    """Cut files again that have not changed: each must give the chunks and definitions that the
    index has of it, however its run was disturbed."""
    if not makes_the_same_chunks(root):
        found.notes.append("Files were not cut again: another version has cut them for the index.")
        return
    try:
        embedder = get_embedder(root.model)
    except CodeinfoError as error:
        found.notes.append(f"Files were not cut again: {error.message}")
        return
    longest = embedder.max_tokens
    embedder.close()
    chunks: list[str] = []
    symbols: list[str] = []
    with Chunker() as chunker:
        for part in slices(rows, FILES_AT_ONCE):
            check()
            some = [row for row in part if _is_complete(row.problem)]
            for row, file in _cut(root, some, chunker):
                found.parsed += 1
                # Their texts are parts of the file, which is the same.
                if [*map(span_of, fitted(file, longest).chunks)] != row.read_spans():
                    chunks.append(row.path)
                if not _same_symbols(root, row, file.symbols):
                    symbols.append(row.path)
    found.add_files("index_differs", "files that give other chunks than the index has", chunks)
    found.add_files("index_differs", "files with other definitions than the index has", symbols)


def _is_complete(problem: str) -> bool:
    """Whether the chunks of a file with this problem are those of any other run."""
    return not problem or problems.is_partly_read(problem)


def _cut(
    root: Root, rows: Sequence[FileRow], chunker: Chunker
) -> list[tuple[FileRow, ChunkedFile]]:
    contents = [(row, data) for row in rows if (data := _content(root, row)) is not None]
    encodings = {row.path: row.encoding for row in rows if row.encoding}
    cut = chunker.chunk_many([(row.path, data) for row, data in contents], encodings)
    pairs = zip((row for row, _ in contents), cut, strict=True)
    # A changed content is reported already, or by the next comparison. What cannot be parsed today
    # is not compared.
    return [
        (row, file)
        for row, file in pairs
        if file.sha256 == row.sha256 and _is_complete(file.problem)
    ]


def _same_symbols(root: Root, row: FileRow, symbols: Sequence[Symbol]) -> bool:
    facts = attrgetter("name", "path", "kind", "start_line", "end_line", "signature")
    return sorted(map(facts, outline_of(root, row.document))) == sorted(map(facts, symbols))


def _content(root: Root, row: FileRow) -> bytes | None:
    try:
        return read_content(Path(root.path), row.path)
    except (NotFound, InvalidInput):
        return None
