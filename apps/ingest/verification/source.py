"""Compares the live rows of a root with its folder: files, contents, chunks and definitions."""

from collections.abc import Sequence
from pathlib import Path

from apps.code.chunking import digest_of
from apps.code.values import Chunk, ChunkedFile, Symbol
from apps.core.errors import CodeinfoError, InvalidInput, NotFound
from apps.core.values.slices import slices
from apps.embedding.catalogue import get_embedder
from apps.index import problems
from apps.index.models import Root
from apps.index.parsing import Chunker
from apps.index.root_directory import read_content
from apps.index.spans import span_of, unpack
from apps.index.symbols import outline_of
from apps.index.types import Check, StoredSymbol
from apps.ingest.discovery.discovery import discover
from apps.ingest.runs.batches import fitted
from apps.ingest.runs.chunker_version import makes_the_same_chunks
from apps.ingest.types import Discovery
from apps.ingest.verification.rows import FileRow
from apps.ingest.verification.types import NameSample, RootComparison

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
    missing, left_out, new, unsolved = NameSample(), NameSample(), NameSample(), NameSample()
    eligible = {candidate.path for candidate in folder.files}
    skipped = {item.path: item.reason for item in folder.skipped}
    for row in live:
        if row.problem and not problems.is_partly_read(row.problem):
            unsolved.add(f"{row.path} ({row.problem})")
        if row.skip_reason or row.path in eligible:
            continue
        if row.path in skipped:
            left_out.add(f"{row.path} ({skipped[row.path]})")
        else:
            missing.add(row.path)
    ingested = {row.path for row in live if not row.skip_reason}
    new.extend(path for path in sorted(eligible) if path not in ingested)
    if missing:
        found.add("file_missing", f"files that are no longer in the folder, {missing}")
    if left_out:
        found.add("file_changed", f"files that would be left out today, {left_out}")
    if new:
        found.add("file_new", f"files that are not in the index, {new}")
    if unsolved:
        found.add("file_problem", f"files that the last run had trouble with, {unsolved}")


def _compare_contents(
    root: Root, rows: Sequence[FileRow], found: RootComparison, check: Check
) -> list[FileRow]:
    """The rows whose files have the content that was ingested."""
    same, changed = [], NameSample()
    for row in rows:
        check()
        data = _content(root, row)
        found.files += data is not None
        if data is not None and digest_of(data, row.encoding) == row.sha256:
            same.append(row)
        else:
            changed.add(row.path)
    if changed:
        found.add("file_changed", f"files with other content than was ingested, {changed}")
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
    chunks, symbols = NameSample(), NameSample()
    with Chunker() as chunker:
        for part in slices(rows, FILES_AT_ONCE):
            check()
            some = [row for row in part if _is_complete(row.problem)]
            for row, file in _cut(root, some, chunker):
                found.parsed += 1
                if not _same_chunks(row, fitted(file, longest).chunks):
                    chunks.add(row.path)
                if not _same_symbols(root, row, file.symbols):
                    symbols.add(row.path)
    if chunks:
        found.add("index_differs", f"files that give other chunks than the index has, {chunks}")
    if symbols:
        found.add("index_differs", f"files with other definitions than the index has, {symbols}")


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


def _same_chunks(row: FileRow, cut: Sequence[Chunk]) -> bool:
    """Whether the row has these chunks. Their texts are parts of the file, which is the same."""
    return [span_of(chunk) for chunk in cut] == unpack(row.spans)


def _same_symbols(root: Root, row: FileRow, symbols: Sequence[Symbol]) -> bool:
    stored = outline_of(root, row.document)
    return sorted(map(_facts, stored)) == sorted(map(_facts, symbols))


def _facts(symbol: Symbol | StoredSymbol) -> tuple[str, str, str, int, int, str]:
    return (
        symbol.name,
        symbol.path,
        symbol.kind,
        symbol.start_line,
        symbol.end_line,
        symbol.signature,
    )


def _content(root: Root, row: FileRow) -> bytes | None:
    try:
        return read_content(Path(root.path), row.path)
    except (NotFound, InvalidInput):
        return None
