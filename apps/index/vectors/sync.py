"""Brings the collection of a store in line with what its roots have published.

The parts have all vectors, so what Chroma has is never read, and anything of it may be dropped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from apps.core.values.slices import grouped, slices
from apps.embedding.types import Vectors
from apps.index.chunk_ids import chunk_id
from apps.index.installation import installation_id
from apps.index.mapped import lists
from apps.index.mapped.lists import Listed
from apps.index.mapped.part import Part
from apps.index.models import Root
from apps.index.spans import Span
from apps.index.types import Check
from apps.index.vectors.chroma import Failed
from apps.index.vectors.collections import SPACE, Collections, Facts, Shard, shard_name
from apps.index.vectors.following import progress
from apps.index.vectors.note import Note, Noted
from apps.index.vectors.process import ChromaProcess
from apps.index.vectors.store import collection

# Rows of one write: .3 s, for which a search of Chroma waits at most.
SLICE = 500
# A shard that has so many rows takes no more: 350 MB of memory.
SHARD_ROWS = 200_000


class Live(NamedTuple):
    """A document that is published, and where its vectors are."""

    rows: int  # with a vector
    last: int  # index of its last chunk
    files: Sequence[tuple[Part, int]]  # places in `Part.files`


def live_documents(listed: Iterable[Listed]) -> dict[str, Live]:
    """Return document → what is published of it, for what the roots of a store list."""
    documents: dict[str, Live] = {}
    for of_one in listed:
        of_root: dict[str, Live] = {}
        for live_part in of_one.parts:
            part = live_part.part
            for place in np.flatnonzero(live_part.live).tolist():
                key = part.files[place].source_file
                if rows := part.vectors_of_files[place]:
                    before = of_root.get(key, Live(0, 0, ()))
                    chunks = part.starts[place + 1] - part.starts[place]
                    last = part.columns.first.item(place) + chunks - 1
                    files = (*before.files, (part, place))
                    of_root[key] = Live(before.rows + rows, max(before.last, last), files)
        documents = of_root | documents
    return documents


class Rows(NamedTuple):
    """Rows of one write."""

    ids: Sequence[str]
    vectors: Vectors
    facts: Sequence[Facts]


def rows_of(part: Part, place: int) -> Iterator[Rows]:
    """Yield the rows of a file that have a vector, SLICE at a time."""
    file, columns = part.files[place], part.columns
    start, first = part.starts[place], columns.first.item(place)
    of_file = {"relPath": file.path, "fileHash": columns.hashes[place].tobytes().hex()}
    has_vector = part.codes.scales[start : part.starts[place + 1]] != 0
    for some in slices((np.flatnonzero(has_vector) + start).tolist(), SLICE):
        spans = (Span(*span) for span in part.spans(some).tolist())
        yield Rows(
            [chunk_id(file.source_file, first + row - start) for row in some],
            part.codes.vectors(np.array(some)),
            [{**of_file, "startLine": at.start_line, "endLine": at.end_line} for at in spans],
        )


class StoreSync:
    """Raises Unavailable, and as `check`, which is called before each slice."""

    def __init__(
        self, store: UUID, roots: Sequence[Root], client: ChromaProcess, note: Note, check: Check
    ) -> None:
        listed = [lists.read(root) for root in roots]
        self._store, self._roots, self._live = store, roots, live_documents(listed)
        self._client, self._note, self._check = client, note, check
        self._sizes: dict[str, int] = {}  # rows of each shard
        self._open = ""  # the shard that was written last
        # Why parts cannot be read. The rows of these are not deleted from Chroma.
        self.lost = [reason for of_root in listed for reason in of_root.lost]

    @property
    def total(self) -> int:
        """How many vectors Chroma shall have."""
        readable = sum(live.rows for live in self._live.values())
        return max(readable, *(root.embedded for root in self._roots)) if self.lost else readable

    def run(self, shards: Mapping[str, Shard]) -> None:
        """shards: those of the store that Chroma has"""
        about = self._about()
        names = [shard_name(collection(self._store), n + 1) for n in range(len(shards))]
        ids = self._note.shards()
        as_noted = (ids.get(name) == shard.id for name, shard in shards.items())
        if [*shards] != names or not all(as_noted) or not _is_of(shards.values(), about):
            drop_shards(shards, self._client, self._note)
            shards = {}
        noted = self._note.documents(shards)
        self._sizes = dict.fromkeys(shards, 0)
        for one in noted.values():
            self._sizes[one.shard] += one.rows
        current = {key: one for key, one in noted.items() if self._is_current(key, one)}
        self._delete({key: one for key, one in noted.items() if key not in current})
        done = sum(one.rows for one in current.values())
        progress.update(self._store, done)
        missing = (key for key in self._live if key not in current)
        for documents in grouped(missing, lambda key: self._live[key].rows, SLICE):
            done += self._add(documents, about)
            progress.update(self._store, done)
        self._write_to("")

    def _is_current(self, document: str, noted: Noted) -> bool:
        live = self._live.get(document)
        return noted.complete and live is not None and live[:2] == (noted.rows, noted.last)

    def _delete(self, noted: Mapping[str, Noted]) -> None:
        """Delete documents. Until all rows of one are gone, the note tells of it."""
        for shard in self._sizes:
            of_shard = {key: one for key, one in noted.items() if one.shard == shard}
            for keys in slices(list(of_shard), SLICE):
                some = {key: of_shard[key] for key in keys}
                self._note.save({key: one._replace(complete=False) for key, one in some.items()})
                ids = [chunk_id(key, at) for key, one in some.items() for at in range(one.last + 1)]
                for part in slices(ids, SLICE):
                    self._check()
                    self._write_to(shard)
                    self._client.call(Collections.delete, shard, part)
                self._note.forget(some)
                self._sizes[shard] -= sum(one.rows for one in some.values())

    def _add(self, documents: Sequence[str], about: Facts) -> int:
        """Add documents. Return the number of their rows."""
        shard = self._shard(about)
        some = {
            key: Noted(shard, self._live[key].rows, self._live[key].last, complete=False)
            for key in documents
        }
        self._note.save(some)
        places = (place for key in documents for place in self._live[key].files)
        pieces = (rows for place in places for rows in rows_of(*place))
        for some_rows in grouped(pieces, lambda rows: len(rows.ids), SLICE):
            self._check()
            self._write_to(shard)
            self._client.call(Collections.add, shard, *_joined(some_rows))
        self._note.save({key: one._replace(complete=True) for key, one in some.items()})
        added = sum(one.rows for one in some.values())
        self._sizes[shard] += added
        return added

    def _shard(self, about: Facts) -> str:
        """The shard that takes further rows."""
        for shard, size in self._sizes.items():
            if size < SHARD_ROWS:
                return shard
        shard = shard_name(collection(self._store), len(self._sizes) + 1)
        self._note.add_shard(shard, self._client.call(Collections.create, shard, about))
        self._sizes[shard] = 0
        return shard

    def _write_to(self, shard: str) -> None:
        """Go to another shard. Of the last one, Chroma must have all rows, and frees the memory."""
        if self._open and self._open != shard:
            size = self._sizes[self._open]
            if (found := self._client.call(Collections.count, self._open)) != size:
                self._note.forget_shard(self._open)
                raise Failed(f"Chroma has {found:,} instead of {size:,} rows in {self._open}")
            if shard:
                self._client.close()
        self._open = shard

    def _about(self) -> dict[str, Any]:
        """The metadata of the collection. Only installation, model and dimension are read here; the
        rest is for people who inspect Chroma."""
        root = self._roots[0]
        model = root.model
        return {
            "embedder": model.partition(":")[0] if ":" in model else "builtin",
            "model": model,
            "dimension": self._dimension,
            "space": SPACE,
            "root": str(self._store),
            "installation": installation_id(),
            "path": root.path,
            "name": root.name,
        }

    @property
    def _dimension(self) -> int:
        files = next((live.files for live in self._live.values()), ())
        return files[0][0].codes.dimension if files else 0


def drop_shards(shards: Iterable[str], client: ChromaProcess, note: Note) -> None:
    """Delete the shards of a collection, given in order: the first one last, without which the
    others are not known. Raises Unavailable."""
    for name in reversed([*shards]):
        client.call(Collections.drop, name)
        note.forget_shard(name)


def _is_of(shards: Iterable[Shard], about: Facts) -> bool:
    """Whether shards have vectors of a model."""
    keys = ("model", "dimension")
    return all(shard.about.get(key) == about[key] for shard in shards for key in keys)


def _joined(pieces: Sequence[Rows]) -> Rows:
    return Rows(
        [key for rows in pieces for key in rows.ids],
        np.concatenate([rows.vectors for rows in pieces]),
        [facts for rows in pieces for facts in rows.facts],
    )
