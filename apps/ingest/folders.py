"""The folders that may be ingested, and the folder picker. All checks use real paths."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from django.utils.text import get_text_list

from apps.core.config import Config, config
from apps.core.errors import InvalidInput, NotFound
from apps.core.values.surrogates import has_surrogates
from apps.index.paths import CONTAINER_BASE
from apps.ingest.bases import bases, is_fixed
from apps.ingest.discovery.own_data import is_clone, refuse_own_data

# Of many bases, a sentence names these.
NAMED_BASES = 5


@dataclass(frozen=True)
class DirListing:
    """The folders inside a folder, as `GET /ingest/dirs` sends them."""

    base: str  # the base that `path` is in
    path: str
    dirs: tuple[str, ...]  # names
    bases: tuple[str, ...]  # all bases


def first_root(settings: Config) -> str:
    """Return the real path of CODEINFO_FIRST_ROOT; "" if the first start ingests nothing."""
    folder = settings.first_root
    return "" if folder.lower() == "none" else str(Path(folder).expanduser().resolve())


def resolve(path: str) -> Path:
    """Return the real path of a folder that may be ingested and can be listed.

    Raises InvalidInput (OUTSIDE_BASE, NOT_DIRECTORY, NOT_READABLE, OWN_DATA) or NotFound. A path
    outside the bases is refused before it is read, so the error does not tell whether it exists.
    """
    if is_clone(Path(path)):
        # The next ingest fetches it, also where it is not there.
        return Path(path)
    folder, _ = _inside(path)
    _names(folder)
    refuse_own_data(folder)
    return folder


def real_path(path: str) -> Path:
    """Return the real path of `path`, which need not exist. Raises InvalidInput OUTSIDE_BASE."""
    return _inside(path)[0]


def list_dirs(path: str = "") -> DirListing:
    """Return the folders inside `path`, by default the first base, sorted ignoring case. Links are
    listed only if they lead to a folder inside a base. Raises as `resolve`."""
    allowed = bases()
    folder, base = _inside(path if path.strip() else str(allowed[0]))
    names = sorted(_names(folder), key=lambda name: (name.casefold(), name))
    return DirListing(str(base), str(folder), tuple(names), tuple(map(str, allowed)))


def candidates(path: str) -> Iterator[str]:
    """Yield the paths that a path of the user's machine may have here: first in the mount of
    HOST_INGEST_DIR, then as it is."""
    host = _slashed(config().host_ingest_dir)
    there = PurePosixPath(_slashed(path))
    if host and ".." not in there.parts and there.is_relative_to(host):
        yield str(CONTAINER_BASE / there.relative_to(host))
    yield path


def allowed_text() -> str:
    """Return the bases as a part of a sentence: "/srv or /home/ada". At most NAMED_BASES."""
    named = [str(base) for base in bases()]
    more = len(named) - NAMED_BASES
    if more > 0:
        named[NAMED_BASES:] = [f"{more} more"]
    return get_text_list(named, "or")


def _slashed(path: str) -> str:
    return path.replace("\\", "/").rstrip("/")


def _inside(path: str) -> tuple[Path, Path]:
    """Return the real path, and the base that it is in."""
    if os.path.isabs(path) and "\0" not in path:
        folder = Path(os.path.realpath(path))
        containing = [base for base in bases() if folder.is_relative_to(base)]
        if containing:
            return folder, max(containing, key=lambda base: len(base.parts))
    hint = "" if is_fixed() else ' The command "codeinfo ingest" offers to add another one.'
    raise InvalidInput(
        f"Only folders beneath {allowed_text()} can be ingested (CODEINFO_INGEST_BASE).{hint}",
        code="OUTSIDE_BASE",
    )


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            # A name that is not UTF-8 cannot be stored, nor sent as JSON.
            return [one.name for one in entries if not has_surrogates(one.name) and _is_folder(one)]
    except NotADirectoryError:
        message = f"{folder} is not a folder. {_choose_another()}"
        raise InvalidInput(message, code="NOT_DIRECTORY") from None
    except PermissionError:
        message = (
            f"{folder} cannot be read. Let the user who runs codeinfo read it, or choose a folder "
            f"beneath {allowed_text()}."
        )
        raise InvalidInput(message, code="NOT_READABLE") from None
    except FileNotFoundError:
        raise NotFound(f"{folder} does not exist. {_choose_another()}") from None
    except OSError as error:
        # It is a loop of links, or its name is too long.
        reason = error.strerror
        raise NotFound(f"{folder} cannot be opened: {reason}. {_choose_another()}") from None


def _choose_another() -> str:
    return f"Choose a folder beneath {allowed_text()}."


def _is_folder(entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_dir()
    # For a link to itself, is_dir would raise; after realpath it returns False.
    target = Path(os.path.realpath(entry.path))
    return target.is_dir() and any(target.is_relative_to(base) for base in bases())
