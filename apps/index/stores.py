"""What the vector store and the word index hold of a root is deleted from both, always together.

Of a root that is removed the words go first: they are in files of our own, so they go even while
Chroma is away. Of one that stays, the vectors do: where Chroma refuses, both are as they were, and
the words are not built again from vectors that are dead.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.errors import Unavailable
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors.packing import origin_in
from apps.index.vectors.store import get_store

logger = logging.getLogger("codeinfo.ingest")


@dataclass(frozen=True)
class StoredRoot:
    """What the stores hold of one root, and whose it is; None where it does not say."""

    root_id: UUID
    vectors: bool
    words: bool
    vectors_of: Origin | None
    words_of: Origin | None
    model: str = ""

    @property
    def origin(self) -> Origin | None:
        return self.vectors_of or self.words_of

    def is_anothers(self, installation: str) -> bool:
        """Whether all of it says that another installation wrote it."""
        of_others = [
            is_anothers(origin, installation)
            for there, origin in ((self.vectors, self.vectors_of), (self.words, self.words_of))
            if there
        ]
        return all(of_others)


def is_anothers(origin: Origin | None, installation: str) -> bool:
    return origin is not None and origin.installation != installation


def stored_roots() -> dict[UUID, StoredRoot]:
    """Every root of which either store holds anything."""
    vectors = get_store().descriptions()
    words = get_lexical().roots()
    return {
        root_id: StoredRoot(
            root_id,
            vectors=root_id in vectors,
            words=root_id in words,
            vectors_of=origin_in(vectors.get(root_id, {})),
            words_of=words_of(root_id) if root_id in words else None,
            model=str(vectors.get(root_id, {}).get("model", "")),
        )
        for root_id in vectors.keys() | words
    }


def words_of(root_id: UUID) -> Origin | None:
    """Whose a root's words are; None where they do not say, or cannot be read."""
    try:
        return get_lexical().origin(root_id)
    except Unavailable:
        return None


def delete_run(root_id: UUID, run_id: UUID, check: Check = never_cancelled) -> None:
    """Delete what a run wrote; where `check` raises, the rest is left."""
    get_store().delete_run(root_id, run_id, check)
    get_lexical().delete_run(root_id, run_id, check)


def delete_files(
    root_id: UUID, source_file_ids: Sequence[UUID], check: Check = never_cancelled
) -> None:
    """Delete the chunks of some files; where `check` raises, the rest is left."""
    get_store().delete_files(root_id, source_file_ids, check)
    get_lexical().delete_files(root_id, source_file_ids, check)


def drop(root_id: UUID, check: Check = never_cancelled) -> None:
    """Delete all of a root that does not say it is another installation's; where `check` raises,
    some of its vectors are left."""
    own = installation_id()
    if not is_anothers(words_of(root_id), own):
        drop_words(root_id)
    if not is_anothers(get_store().origin(root_id), own):
        drop_vectors(root_id, check)


def drop_words(root_id: UUID) -> None:
    """Delete the words of a root, and say so in the log."""
    if root_id in get_lexical().roots():
        origin, count = words_of(root_id), _count(lambda: get_lexical().count(root_id))
        get_lexical().drop(root_id)
        _log(root_id, origin, words=count)


def drop_vectors(root_id: UUID, check: Check = never_cancelled) -> int | None:
    """Delete the vectors of a root, and say so in the log. How many there were; None where they
    were too broken to be counted."""
    origin, count = get_store().origin(root_id), _count(lambda: get_store().count(root_id))
    get_store().drop(root_id, check)
    if count or origin:
        _log(root_id, origin, vectors=count)
    return count


def roots() -> set[UUID]:
    """The roots of which either holds anything."""
    return get_store().collections() | get_lexical().roots()


def _count(count: Callable[[], int]) -> int | None:
    """None where what is broken cannot be counted: it can be deleted all the same."""
    try:
        return count()
    except Unavailable:
        return None


def _log(root_id: UUID, origin: Origin | None, **rows: int | None) -> None:
    named = {"path": origin.path, "name": origin.name} if origin else {}
    facts = {"root": str(root_id), **named, **rows}
    logger.info("index deleted", extra={"context": facts})
