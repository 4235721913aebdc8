"""The files of the index of a root, as its row lists them (`Root.parts`).

    index/<name>.part    immutable, named by its content (`part`)

Publishing replaces the list in one UPDATE. A part that differs from its checksums is marked in the
list (`mark`), and counts as lost. A file that no row lists is deleted (`collecting`).
Roots with equal files list the same parts, each with its own live files.
"""

import logging
from collections.abc import Iterable, MutableMapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from django.db.models import F

from apps.core.config import config
from apps.core.errors import Unavailable, reason_of
from apps.index import changes
from apps.index.installation import installation_id
from apps.index.mapped import files, part
from apps.index.mapped.files import Damaged
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import Mask, Part
from apps.index.mapped.root import MappedRoot
from apps.index.models import IngestRun, Root

log = logging.getLogger("codeinfo.index")

# An item of `Root.parts`: its keys are those of `listed`, and `damaged` if it was marked.
Entry = dict[str, Any]

# Roots that list the same parts, and the generations of a root, map them once.
_mapped: MutableMapping[str, Part] = WeakValueDictionary()
# Parts whose file somebody has written to, and that were not found whole since.
_written_to: set[str] = set()


class Listed(NamedTuple):
    """What a root lists."""

    parts: Sequence[LiveFiles]
    lost: Sequence[str]  # why a part cannot be read, one for each


def owner_of(root: Root, run: IngestRun | None = None) -> part.Owner:
    """Who writes a part: a run, or a merge of the parts of a root."""
    named = run or root
    run_id = run.id.hex if run else ""
    return part.Owner(installation_id(), root.id.hex, run_id, root.path, named.name, named.model)


def folder() -> Path:
    return config().data_dir / "index"


def listed(parts: Iterable[LiveFiles]) -> list[Entry]:
    """The list of these parts."""
    return [
        {
            "name": live_part.part.name,
            "rows": live_part.rows,
            "files": len(live_part.live),
            "live": None if live_part.live.all() else part.packed(live_part.live),
        }
        for live_part in parts
    ]


def mark(root: Root, name: str, *, is_damaged: bool) -> None:
    """Have a root list a part as damaged, or as whole again. Nobody maps a damaged one."""
    entries = [
        _marked(entry, is_damaged=is_damaged) if entry["name"] == name else entry
        for entry in root.parts
    ]
    if entries == root.parts:
        return
    same = Root.objects.filter(id=root.id, generation=root.generation, revision=root.revision)
    if same.update(parts=entries, revision=F("revision") + 1):
        changes.roots_changed()


def _marked(entry: Entry, *, is_damaged: bool) -> Entry:
    plain = {key: value for key, value in entry.items() if key != "damaged"}
    return plain | {"damaged": True} if is_damaged else plain


def read(root: Root) -> Listed:
    """Map the parts that `root` lists, or if one is gone since it was merged, those that the row
    lists now."""
    found = _read(root.parts)
    if found.lost:
        current = Root.objects.filter(id=root.id, generation=root.generation).first()
        if current is not None and current.revision != root.revision:
            return _read(current.parts)
    return found


def rows_of(root: Root, *, compared: bool = False) -> int:
    """The number of live chunks in the parts of `root` that are not lost. Raises Unavailable if one
    cannot be opened now, as where too many files are open.

    compared: whether a part that differs from its checksums is lost, marked or not
    """
    rows = 0
    try:
        for entry in root.parts:
            with suppress(Damaged, FileNotFoundError):
                if compared:
                    files.verify(part.path_of(folder(), entry["name"]))
                rows += _opened(entry, {}).rows
    except OSError as error:
        text = f"The index cannot be read: {reason_of(error)}"
        raise Unavailable(text, code="INDEX_UNAVAILABLE") from error
    return rows


def _read(entries: Sequence[Entry]) -> Listed:
    parts, lost = [], []
    for entry in entries:
        try:
            parts.append(_opened(entry, _mapped))
        except (Damaged, OSError) as error:
            lost.append(reason_of(error))
    return Listed(parts, lost)


def _opened(entry: Entry, mapped: MutableMapping[str, Part]) -> LiveFiles:
    """mapped: parts by name that need not be mapped again; gets those that are

    Raises Damaged, OSError.
    """
    name, count, live = entry["name"], entry["files"], entry["live"]
    if entry.get("damaged"):
        raise Damaged(f"{name} differs from its checksums")
    if (opened := mapped.get(name)) is None or opened.is_lost:
        if opened is not None:
            _written_to.add(name)
        opened = part.read(folder(), name)
        if name in _written_to:
            files.verify(part.path_of(folder(), name))
            _written_to.discard(name)
        mapped[name] = opened
    if (found := len(opened.columns.first)) != count:
        raise Damaged(f"{opened.name} has {found} files, not {count}")
    mask = np.ones(count, np.bool_) if live is None else part.unpacked(live, count)
    return LiveFiles(opened, mask)


def opened(root: Root) -> MappedRoot:
    """Map a root. What cannot be read is in `MappedRoot.lost`."""
    parts, lost = read(root)
    if lost:
        facts = {"root": root.path, "reason": "; ".join(lost)}
        log.warning("parts of the index cannot be read", extra={"context": facts})
    return MappedRoot.of(root, parts, lost)


def taken(groups: Iterable[Sequence[Part]], documents: Set[str]) -> list[LiveFiles]:
    """The parts from which a generation takes its documents, each from the first group that has it.
    A long document is in several parts of a group."""
    parts: dict[str, LiveFiles] = {}
    missing = set(documents)
    for group in groups:
        live = [LiveFiles(one, _mask(one, missing)) for one in group if one.name not in parts]
        for live_part in live:
            missing.difference_update(live_part.documents)
        parts |= {live_part.part.name: live_part for live_part in live if live_part.live.any()}
        if not missing:
            break
    return list(parts.values())


def _mask(one: Part, documents: Set[str]) -> Mask:
    return np.array([file.source_file in documents for file in one.files], np.bool_)
