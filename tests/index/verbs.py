"""Verbs that a test has Chroma's process do."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.embedding.types import Vectors
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections


def die(collections: Collections) -> None:
    """kill -9 in the middle of a call."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(collections: Collections, mark: Path) -> str:
    """kill -9 in the middle of the first call."""
    if not mark.exists():
        mark.touch()
        die(collections)
    return "survived"


def pid(collections: Collections) -> int:
    return os.getpid()


class PanicException(BaseException):
    """As pyo3 raises for a panic of Rust: no Exception."""


def panic(collections: Collections) -> None:
    with chroma.chroma_errors():
        raise PanicException("called `Option::unwrap()` on a `None` value")


def segfault(collections: Collections) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def malformed(collections: Collections) -> None:
    """As Chroma tells of a page of its database that is none."""
    raise chroma.unavailable("Chroma failed: error returned from database: (code: 11) malformed")


def add_earlier(
    collections: Collections,
    name: str,
    about: dict[str, Any],
    ids: Sequence[str],
    vectors: Vectors,
    metadata: Sequence[dict[str, Any] | None],
) -> None:
    """Add rows with metadata, as versions before December 2026 did."""
    made = collections._client.get_or_create_collection(
        name, embedding_function=None, metadata=about
    )
    made.add(ids=list(ids), embeddings=vectors, metadatas=list(metadata))
