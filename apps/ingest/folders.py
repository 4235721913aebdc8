"""Which folders may be ingested, and the folder picker. Everything is judged by real path."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.surrogates import has_surrogates
from apps.ingest.discovery.own_data import refuse_own_data


@dataclass(frozen=True)
class DirListing:
    """The folders inside `path`, which lies in `base`; `bases` are all that may be picked from."""

    base: str
    path: str
    dirs: tuple[str, ...]
    bases: tuple[str, ...]


def bases() -> tuple[Path, ...]:
    """The folders of CODEINFO_INGEST_BASE by real path, each once, in the order given."""
    return tuple(dict.fromkeys(Path(os.path.realpath(base)) for base in config().ingest_base))


def resolve(path: str) -> Path:
    """The real path of a folder that may be ingested and can be listed.

    Raises InvalidInput (OUTSIDE_BASE, NOT_DIRECTORY, NOT_READABLE, OWN_DATA) or NotFound. A path
    outside the bases is refused before the disk is asked, so the answer tells nothing about what is
    there.
    """
    folder, _ = _inside(path)
    _names(folder)
    refuse_own_data(folder)
    return folder


def real_path(path: str) -> Path:
    """The real path of `path`, whether anything is there or not.

    Raises InvalidInput (OUTSIDE_BASE) where it lies outside the bases.
    """
    return _inside(path)[0]


def list_dirs(path: str = "") -> DirListing:
    """The folders inside `path`; a blank path means the first base. Errors as in `resolve`.

    Sorted without regard to case. Links are offered only where they stay inside a base.
    """
    allowed = bases()
    folder, base = _inside(path if path.strip() else str(allowed[0]))
    names = sorted(_names(folder), key=lambda name: (name.casefold(), name))
    return DirListing(str(base), str(folder), tuple(names), tuple(map(str, allowed)))


def _inside(path: str) -> tuple[Path, Path]:
    # realpath also resolves `..` and every link on the way, existing or not.
    if os.path.isabs(path) and "\0" not in path:
        folder = Path(os.path.realpath(path))
        holding = [base for base in bases() if folder.is_relative_to(base)]
        if holding:
            return folder, max(holding, key=lambda base: len(base.parts))
    raise InvalidInput("The folder lies outside CODEINFO_INGEST_BASE.", code="OUTSIDE_BASE")


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return list(_folders(entries))
    except NotADirectoryError:
        raise InvalidInput(f"{folder} is not a folder.", code="NOT_DIRECTORY") from None
    except PermissionError:
        raise InvalidInput(f"{folder} cannot be read.", code="NOT_READABLE") from None
    except OSError as error:
        # Gone, a loop of links, a name too long: there is no such folder.
        raise NotFound(f"{folder} does not exist: {error.strerror}.") from None


def _folders(entries: Iterator[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        if _can_be_named(entry.name) and _is_folder(entry):
            yield entry.name


def _can_be_named(name: str) -> bool:
    # A name that is no UTF-8 cannot travel in JSON nor be stored.
    return not has_surrogates(name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_dir()
    # A link to itself is no folder to realpath, where is_dir would raise.
    target = Path(os.path.realpath(entry.path))
    return target.is_dir() and any(target.is_relative_to(base) for base in bases())
