"""Live files: find one by its path, and read its lines as they were ingested."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from apps.code.chunking import decode, lines_of
from apps.core.errors import CodeinfoError, NotFound, Unavailable
from apps.index import queries
from apps.index.lexical import StoredChunk, get_lexical
from apps.index.models import Root, SourceFile
from apps.index.root_directory import read_file
from apps.retrieval.repositories import is_named, repo_id

# Paths that the error about an unknown path lists.
MAX_NAMED = 5


def live_file(root: Root, path: str) -> SourceFile:
    """The live row of a file.

    The path must equal one that an ingest wrote, so `..` and absolute paths never reach the disk.
    `repo/path` is read as `path` if there is no other file.
    Raises NotFound FILE_NOT_FOUND; the message lists files with the same name.
    """
    files = queries.live_files(root).ingested()
    row = files.filter(path=path).first()
    first, _, rest = path.partition("/")
    if row is None and is_named(root, first):
        row = files.filter(path=rest).first()
    if row is None:
        text = f"{path} is not among the ingested files of {repo_id(root)}."
        name = path.rpartition("/")[2]
        alike = files.filter(path__endswith=f"/{name}").values_list("path", flat=True)[:MAX_NAMED]
        hint = f" There is {', '.join(alike)}." if name and alike else ""
        raise NotFound(text + hint, code="FILE_NOT_FOUND")
    return row


def ingested_lines(files: Iterable[tuple[Root, str]]) -> dict[str, list[str]]:
    """The lines of files, by the id of their SourceFile. `files` are pairs of root and that id.

    Lines come from the disk if the file is unchanged, otherwise from its chunks. Files that have
    neither are left out. Each file is read once.
    """
    roots = {source_file: root for root, source_file in files}
    rows = SourceFile.objects.in_bulk(list(roots))
    each = ((str(row.id), _lines(roots[str(row.id)], row)) for row in rows.values())
    return {source_file: lines for source_file, lines in each if lines is not None}


def _lines(root: Root, file: SourceFile) -> list[str] | None:
    return _unchanged_lines(root, file) or stored_lines(root, file)


def _unchanged_lines(root: Root, file: SourceFile) -> list[str] | None:
    """The lines on disk; None if the file is gone or has changed."""
    try:
        data = read_file(Path(root.path), file.path)
    except CodeinfoError:
        return None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        return None
    return lines_of(decode(data))


def stored_lines(root: Root, file: SourceFile) -> list[str] | None:
    """The lines as they were ingested, from the chunks; None if the word index lacks them."""
    ids = [f"{file.run_id}:{file.path}:{index}" for index in range(file.chunks)]
    try:
        chunks = get_lexical().chunks(root.id, ids)
    except Unavailable:
        return None
    return _joined(chunks[each] for each in ids if each in chunks)


def _joined(chunks: Iterable[StoredChunk]) -> list[str] | None:
    """The lines of a file from its chunks; None if a chunk has no line number.

    Lines between chunks were blank. The parts of one long line are joined.
    """
    lines: list[str] = []
    for chunk in chunks:
        start = chunk.facts.start_line
        if start < 1:
            return None
        lines.extend("" for _ in range(start - len(lines) - 1))
        first, *rest = chunk.text.split("\n")
        lines[start - 1 :] = ["".join(lines[start - 1 :]) + first, *rest]
    return lines
