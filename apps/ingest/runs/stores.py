"""What the vector store and the word index hold of a root is deleted from both, always together.

The words go first: they are in files of our own, so they go even while Chroma is away.
"""

from collections.abc import Sequence
from uuid import UUID

from apps.ingest.lexical import get_lexical
from apps.ingest.types import Check, go_on
from apps.ingest.vectors.store import get_store


def delete_run(root_id: UUID, run_id: UUID, check: Check = go_on) -> None:
    """Delete what a run wrote; where `check` raises, the rest is left."""
    get_lexical().delete_run(root_id, run_id, check)
    get_store().delete_run(root_id, run_id, check)


def delete_files(root_id: UUID, source_file_ids: Sequence[UUID], check: Check = go_on) -> None:
    """Delete the chunks of some files; where `check` raises, the rest is left."""
    get_lexical().delete_files(root_id, source_file_ids, check)
    get_store().delete_files(root_id, source_file_ids, check)


def drop(root_id: UUID, check: Check = go_on) -> None:
    """Delete all of a root; where `check` raises, some of its vectors are left."""
    get_lexical().drop(root_id)
    get_store().drop(root_id, check)


def roots() -> set[UUID]:
    """The roots of which either holds anything."""
    return get_store().collections() | get_lexical().roots()
