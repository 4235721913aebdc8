"""The mapped copies of the roots, in the folder `mapped` of the data folder.

    mapped/<store>/<root>-<generation>.json   the parts of a generation, and their live files
    mapped/<store>/<name>.part                chunks, codes of their vectors, words (`part`)
    mapped/<store>/lock                       held by the process that writes

Roots that share a store (`Root.store`) share the parts: equal copies of a folder cost a list of
parts each. A root has other parts only for chunks that no part has which is mostly its own.

A copy is derived from the stores. It can be deleted at any time, and is then written again. What is
damaged, or of another format, is not used.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.system import disk, posix
from apps.index.installation import installation_id
from apps.index.lexical import LexicalStore
from apps.index.mapped import building, files, part
from apps.index.mapped.building import Stores
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.root import MappedRoot
from apps.index.mapped.spool import CodesSource, StoredCodes
from apps.index.models import Root
from apps.index.types import Check, never_cancelled
from apps.index.vectors.store import VectorStore

log = logging.getLogger("codeinfo.index")

_DESCRIPTION = re.compile(r"([0-9a-f]{32})-(\d{1,10})\.json")

# Bytes of a chunk beside its vector: 229 for its words (250,000 chunks of 31 repositories), 16 for
# its length, norm, scale and file.
FACTS_BYTES = 250
# Of a chunk on the disk, about, at 256 dimensions.
DISK_BYTES = 1_000


def memory_of(chunks: int, dimension: int) -> int:
    """The bytes of a copy that searches scan, and so stay in memory: all but the low bytes of the
    codes and the names, which a search reads for some hundred chunks."""
    bits = max(8, 1 << (dimension - 1).bit_length())
    return chunks * (dimension + bits // 8 + FACTS_BYTES)


def fits(chunks: int, dimension: int) -> bool:
    """Whether searches of so many chunks may use a copy (CODEINFO_RETRIEVAL_MEMORY_MB). Otherwise
    the stores answer."""
    return memory_of(chunks, dimension) <= config().retrieval_memory_mb << 20


class MappedCopies:
    """Opens and writes the copies. Thread-safe; any number of processes can share a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, root: Root, dimension: int) -> MappedRoot | None:
        """Map the copy of the generation of `root`. None if there is none, or it is damaged."""
        folder = self._folder(root.store)
        try:
            generation = _read(_path(folder, root.id, root.generation))
            if not _is_of(generation, root, dimension):
                return None
            parts = [_open_part(folder, entry, root.store) for entry in generation["parts"]]
        except FileNotFoundError:
            return None
        except (files.Damaged, OSError) as error:
            log.warning("mapped copy not usable", extra={"context": _facts(root, error)})
            return None
        return _opened(root, parts)

    def write(
        self,
        root: Root,
        live: Set[str],
        lexical: LexicalStore,
        store: VectorStore,
        installation: str,
    ) -> MappedRoot | None:
        """Write the copy of the generation of `root`, and open it.

        live: documents of the SourceFiles of this generation
        installation: `installation_id()`

        None if words or vectors are missing. Raises Unavailable, also if the disk is full.
        """
        stage = _Stage(self._folder(root.store), root, installation)
        with files.writing_errors(), stage:
            parts = stage.existing() or stage.build(live, lexical, StoredCodes(store))
            stage.finish()
            return _opened(root, parts) if parts else None

    @contextmanager
    def staged(
        self, root: Root, live: Set[str], lexical: LexicalStore, codes: CodesSource, check: Check
    ) -> Iterator[None]:
        """Write the copy of the generation that the block publishes, so that its first search maps
        it. If the block raises, the copy is deleted.

        root: as it will be published
        live: documents of the SourceFiles of this generation
        check: called between the steps; what it raises is raised

        If the copy cannot be written, a warning is logged, and the first search tries again.
        """
        with ExitStack() as stack:
            stage = None
            try:
                with files.writing_errors():
                    folder = self._folder(root.store)
                    stage = stack.enter_context(_Stage(folder, root, installation_id()))
                    stage.build(live, lexical, codes, check)
            except Unavailable as error:
                log.warning("mapped copy not written", extra={"context": _facts(root, error)})
                stage = None
                stack.close()
            yield
            if stage is not None:
                try:
                    stage.finish()
                except OSError as error:
                    log.warning("mapped copy not written", extra={"context": _facts(root, error)})

    def drop(self, store: UUID) -> None:
        """Delete the copies of all roots of a store."""
        shutil.rmtree(self._folder(store), ignore_errors=True)

    def sweep(self, roots: Iterable[tuple[UUID, UUID]]) -> None:
        """Delete the copies of all roots but these, which are pairs of store and root id."""
        stores: dict[str, set[str]] = {}
        for store, root_id in roots:
            stores.setdefault(store.hex, set()).add(root_id.hex)
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                if name not in stores:
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                else:
                    with suppress(OSError, files.Damaged):
                        _sweep_roots(self.folder / name, stores[name])

    def collect(self) -> None:
        """Delete the parts that no copy names, as a process leaves them that is killed while it
        writes. A folder that another process writes is left out."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                folder = self.folder / name
                with suppress(OSError, files.Damaged), _locked(folder, wait=False):
                    latest = _latest(folder).items()
                    _sweep(
                        folder,
                        {root: int(description["generation"]) for root, description in latest},
                    )

    def _folder(self, store: UUID) -> Path:
        return self.folder / store.hex


class _Stage:
    """The copy of a generation while it is written. The folder is locked in the block.

    At its end, all files are deleted but the latest generation of each root. That of `root` is this
    one after `finish`. Raises OSError, and Unavailable if there is no space.
    """

    def __init__(self, folder: Path, root: Root, installation: str) -> None:
        self._folder = folder
        self._root = root
        self._installation = installation
        self._parts: list[LiveFiles] | None = None
        self._kept: dict[str, int] = {}
        self._open = ExitStack()

    def __enter__(self) -> "_Stage":
        self._folder.mkdir(parents=True, exist_ok=True)
        self._open.enter_context(_locked(self._folder))
        self._latest = _latest(self._folder)
        self._kept = {
            name: int(description["generation"]) for name, description in self._latest.items()
        }
        return self

    def __exit__(self, *raised: object) -> None:
        # What is left over is deleted by the next one.
        with self._open, suppress(OSError, files.Damaged):
            _sweep(self._folder, self._kept)

    def existing(self) -> list[LiveFiles] | None:
        """Return the parts that another process has written while this one waited."""
        described = self._latest.get(self._root.id.hex)
        if described is None or not _is_of(described, self._root, described["dimension"]):
            return None
        with suppress(files.Damaged, FileNotFoundError):
            entries = described["parts"]
            self._parts = [_open_part(self._folder, entry, self._root.store) for entry in entries]
        return self._parts

    def build(
        self,
        live: Set[str],
        lexical: LexicalStore,
        codes: CodesSource,
        check: Check = never_cancelled,
    ) -> list[LiveFiles] | None:
        """Write the parts; return None if words or vectors are missing."""
        root = self._root
        groups = list(_reusable(self._folder, self._latest, root))
        parts = building.live_parts(groups, live)
        _check_space(root.embedded - sum(live_part.rows for live_part in parts))
        owner = part.Owner(self._installation, root.id.hex, "")
        stores = Stores(root.store, lexical, codes, self._folder, owner, check)
        self._parts = building.build(stores, live, root.embedded, groups)
        return self._parts

    def finish(self) -> None:
        """Describe the generation, so that searches find it."""
        if self._parts is not None:
            text = json.dumps(_described(self._root, self._parts))
            files.write_text(_path(self._folder, self._root.id, self._root.generation), text)
            self._kept[self._root.id.hex] = self._root.generation


def _check_space(chunks: int) -> None:
    """Raise Unavailable DISK_FULL if so many more chunks do not fit."""
    needed = max(0, chunks) * DISK_BYTES
    folder = config().data_dir.absolute()
    for space in disk.spaces():
        if space.folder == folder and space.free < space.required + needed:
            raise disk.full_error(replace(space, required=space.required + needed))


def _opened(root: Root, parts: Sequence[LiveFiles]) -> MappedRoot:
    dimension = parts[0].part.dimension
    return MappedRoot.of(
        root.generation, dimension, [(live_part.part, live_part.live) for live_part in parts]
    )


def _described(root: Root, parts: Sequence[LiveFiles]) -> dict[str, Any]:
    return {
        "version": files.VERSION,
        "root": root.id.hex,
        "generation": root.generation,
        "model": root.model,
        "dimension": parts[0].part.dimension,
        "counts": _counts(root),
        "parts": [
            {
                "name": live_part.part.name,
                "rows": len(live_part.part),
                "files": len(live_part.live),
                "live": None if live_part.live.all() else part.packed(live_part.live),
            }
            for live_part in parts
        ],
    }


def _is_of(generation: dict[str, Any], root: Root, dimension: int) -> bool:
    """Whether this describes the rows of `root`."""
    return bool(
        generation["version"] == files.VERSION
        and generation["root"] == root.id.hex
        and generation["generation"] == root.generation
        and generation["model"] == root.model
        and generation["dimension"] == dimension
        and generation["counts"] == _counts(root)
    )


def _counts(root: Root) -> list[int]:
    """They differ if the database was restored, and a generation has another content since."""
    return [root.files, root.chunks, root.embedded]


def _read(path: Path) -> dict[str, Any]:
    """Raises files.Damaged, FileNotFoundError."""
    described: dict[str, Any] = json.loads(files.read_text(path))
    return described


def _open_part(folder: Path, entry: dict[str, Any], store: UUID) -> LiveFiles:
    """Raises files.Damaged, FileNotFoundError."""
    opened = part.read(folder, entry["name"])
    if opened.store != store or len(opened) != entry["rows"]:
        raise files.Damaged(f"{entry['name']} is of another root")
    count = entry["files"]
    live = entry["live"]
    mask = np.ones(count, np.bool_) if live is None else part.unpacked(live, count)
    return LiveFiles(opened, mask)


def _reusable(
    folder: Path, latest: Mapping[str, dict[str, Any]], root: Root
) -> Iterator[list[part.Part]]:
    """The intact parts of the former generation of a root, and then those of the other roots of its
    store, if they have vectors of the same model. Each part is in one list."""
    names: set[str] = set()
    for _, before in sorted(latest.items(), key=lambda item: item[0] != root.id.hex):
        group = []
        for entry in before["parts"] if before["model"] == root.model else ():
            if entry["name"] not in names:
                names.add(entry["name"])
                with suppress(files.Damaged, FileNotFoundError):
                    group.append(_open_part(folder, entry, root.store).part)
        yield group


def _latest(folder: Path) -> dict[str, dict[str, Any]]:
    """Return hex id of each root → its latest generation that is described intactly."""
    latest: dict[str, dict[str, Any]] = {}
    for root, number in sorted(_generations(folder)):
        with suppress(files.Damaged, FileNotFoundError):
            described = _read(folder / f"{root}-{number}.json")
            if described["version"] == files.VERSION:
                latest[root] = described
    return latest


def _sweep_roots(folder: Path, roots: Set[str]) -> None:
    """Delete the copies of all roots but some (hex ids)."""
    if {root for root, _ in _generations(folder)} <= roots:
        return
    with _locked(folder):
        latest = _latest(folder).items()
        _sweep(
            folder,
            {root: int(description["generation"]) for root, description in latest if root in roots},
        )


def _sweep(folder: Path, kept: Mapping[str, int]) -> None:
    """Delete all but one generation of some roots (hex id → generation), and their parts."""
    names = {"lock"}
    for root, generation in kept.items():
        path = folder / f"{root}-{generation}.json"
        names |= {path.name, *(f"{entry['name']}.part" for entry in _read(path)["parts"])}
    for name in os.listdir(folder):
        if name not in names:
            (folder / name).unlink(missing_ok=True)


def _generations(folder: Path) -> list[tuple[str, int]]:
    """The hex id of the root and the generation that each description is of."""
    matches = [_DESCRIPTION.fullmatch(name) for name in os.listdir(folder)]
    return [(match[1], int(match[2])) for match in matches if match]


def _path(folder: Path, root_id: UUID, generation: int) -> Path:
    return folder / f"{root_id.hex}-{generation}.json"


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Wait until no other process writes the copy of this root. Raises OSError if one does and
    `wait` is False."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not posix.lock(descriptor, wait=wait):
            raise BlockingIOError("another process writes this copy")
        yield
    finally:
        os.close(descriptor)


def _facts(root: Root, error: Exception) -> dict[str, str]:
    return {"root": root.path, "reason": str(error)}


def get_copies() -> MappedCopies:
    """Return the copies in the data folder."""
    return MappedCopies(config().data_dir.absolute() / "mapped")
