"""What must hold after each round, read from the outside: rows, stores, folders, conversations."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.core.errors import CodeinfoError
from apps.index.mapped import part
from apps.index.parsing import Chunker
from apps.index.root_directory import read_file
from apps.index.texts import TextStore
from apps.ingest.discovery.discovery import discover
from apps.site.control.client import ask
from tests.soak.server import Server

Pieces = Counter[tuple[str, int, int, str]]  # path, first and last line, hash of the text
ENDED = ("ok", "stopped", "failed")


def disagreements(data: Path) -> list[str]:
    """What the running server finds when it verifies its index against its folders."""
    try:
        found = ask(data, "verify", {"source": True}, lambda message: None)
    except CodeinfoError as error:
        return [f"the index cannot be verified: {error.code}: {error.message}"]
    if found is None:
        return ["no server runs"]
    differences = [each for root in found["roots"] for each in root["differences"]]
    return [
        f"{each['root']}: {each['kind']}: {each['detail']}"
        for each in (*differences, *found["shared"])
    ]


def unlike_a_clean_ingest(data: Path, folder: Path) -> list[str]:
    """How the chunks that are published of a folder differ from those that its files give now."""
    there, expected = published_pieces(data, folder), pieces_of(folder)
    lacking, surplus = expected - there, there - expected
    if not lacking and not surplus:
        return []
    example = next(iter((lacking or surplus).elements()))[:3]
    return [
        f"{folder}: {lacking.total()} chunks are missing and {surplus.total()} are too many, "
        f"of {expected.total()}: {example}"
    ]


def pieces_of(folder: Path) -> Pieces:
    """What a clean ingest of a folder would publish."""
    return _pieces(tuple((f.path, read_file(folder, f.path)) for f in discover(folder).files))


@lru_cache(maxsize=8)  # most rounds change one repository of five
def _pieces(contents: tuple[tuple[str, bytes], ...]) -> Pieces:
    # The next one takes over the process of a chunker that has a single one.
    with Chunker(parse_seconds=30, processes=1) as chunker:
        files = chunker.chunk_many(list(contents))
    return Counter(
        (file.path, chunk.start_line, chunk.end_line, _hash(chunk.text))
        for file in files
        for chunk in file.chunks
    )


def published_pieces(data: Path, folder: Path) -> Pieces:
    """What the parts have of the live files of a folder; nothing where it has no root."""
    with closing(_opened(data / "codeinfo.sqlite3")) as database:
        root = database.execute(
            "SELECT id, parts FROM index_root WHERE path = ?", (str(folder),)
        ).fetchone()
        if root is None:
            return Counter()
        live = {
            str(UUID(hex=file))
            for (file,) in database.execute(
                "SELECT f.document FROM index_sourcefile f JOIN index_root r ON f.root_id = r.id "
                "WHERE r.id = ? AND f.since <= r.generation "
                "AND (f.until IS NULL OR f.until > r.generation)",
                root[:1],
            )
        }
    chunks = [each for entry in json.loads(root[1]) for each in _chunks_of(data, entry)]
    with closing(TextStore(data / "texts")) as store:
        texts = store.read({key for _, _, key, _ in chunks})
    return Counter(
        (path, first, last, _hash(texts.get(key, "")[offset : offset + length]))
        for file, path, key, (first, last, offset, length) in chunks
        if file in live
    )


def _chunks_of(data: Path, entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str, list[int]]]:
    """Document, path, key and span of the live chunks of a part that a root lists."""
    one = part.read(data / "index", entry["name"])
    mask = entry["live"] and part.unpacked(entry["live"], entry["files"])
    for place, span in zip(one.file_of.tolist(), one.spans(slice(None)).tolist(), strict=True):
        if mask is None or mask[place]:
            file = one.files[place]
            yield file.source_file, file.path, one.columns.hashes[place].tobytes().hex(), span


def lost_messages(server: Server, sent: Mapping[str, list[str]]) -> list[str]:
    """Which of the messages that the server accepted it has no longer, and which answers of a
    conversation are not at their end."""
    return [problem for name in sent for problem in _lost(server, name, sent[name])]


def _lost(server: Server, conversation: str, messages: list[str]) -> Iterator[str]:
    response = server.ask("GET", f"/conversations/{conversation}/turns")
    if response is None or response.status_code != 200:
        status = response.status_code if response is not None else "no answer"
        yield f"conversation {conversation}: {status}"
        return
    turns: list[dict[str, Any]] = response.json()["items"]
    there = {turn["content"] for turn in turns if turn["role"] == "user"}
    for message in messages:
        if message not in there:
            yield f"conversation {conversation} has lost {message!r}"
    for turn in turns:
        if turn["status"] not in ENDED:
            yield f"conversation {conversation}: a turn is {turn['status']}"


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)
