"""The folders beneath which may be ingested.

CODEINFO_INGEST_BASE names them, and nothing else counts then. Without it they are the home folder,
the checkout, and the folders of `ingest-bases.json` in the data folder. Only these may add one: a
client with the token of `server.json`, which is of the user who runs codeinfo and could write the
file as well, and staff with a browser on this machine (`local_users.is_on_this_machine`), who may
add only what is no wider than a project (`narrow`). So neither the page of another site, nor a
token or login that others were given, widens what codeinfo reads.
"""

import json
import logging
import os
import threading
from pathlib import Path

from apps.core.config import config, default_bases
from apps.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from apps.core.system import posix
from apps.core.values.surrogates import has_surrogates
from apps.ingest.discovery.own_data import refuse_own_data

NAME = "ingest-bases.json"
# Far more than anybody adds; a path is shorter than 4,096 bytes (PATH_MAX).
MOST_BASES, MOST_BYTES = 100, 1 << 20

logger = logging.getLogger("codeinfo.ingest")
_changing = threading.Lock()


def is_fixed() -> bool:
    """Return True if CODEINFO_INGEST_BASE, or the container, names the bases."""
    return bool(config().ingest_base)


def bases() -> tuple[Path, ...]:
    """Return the real paths of all bases in order, without duplicates."""
    named = config().ingest_base or default_bases()
    real = [Path(os.path.realpath(base)) for base in named]
    return tuple(dict.fromkeys([*real, *added()]))


def added() -> tuple[Path, ...]:
    """Return the bases that were added, by real path. Empty if CODEINFO_INGEST_BASE is set.

    A base that is a link now does not count: somebody has replaced the folder.
    """
    if is_fixed():
        return ()
    return tuple(path for path in _stored() if os.path.realpath(path) == str(path))


def add(path: str) -> Path:
    """Allow a folder, and all below it, to be ingested. Return its real path.

    Raises Conflict (BASES_FIXED, TOO_MANY_BASES), InvalidInput (NOT_DIRECTORY, NOT_READABLE,
    OWN_DATA, TOO_WIDE), NotFound, and Unavailable if it cannot be written.
    """
    return _add(_suitable(path))


def _add(folder: Path) -> Path:
    with _changing:
        if any(folder.is_relative_to(base) for base in bases()):
            return folder
        stored = _stored()
        if len(stored) >= MOST_BASES:
            raise Conflict(f"There are {MOST_BASES} added folders.", code="TOO_MANY_BASES")
        _write((*stored, folder))
    logger.info("ingest base added", extra={"context": {"path": str(folder)}})
    return folder


def narrow(path: str) -> Path:
    """Return the real path of a folder that staff may add on the Ingest page.

    Raises as `add`, and TOO_WIDE for the home folder, and for a folder with a base, the home folder
    or codeinfo's data in it.
    """
    folder = _suitable(path)
    kept = (Path.home(), config().data_dir.absolute(), *bases())
    if any(Path(os.path.realpath(one)).is_relative_to(folder) for one in kept):
        text = f"{folder} holds more than a project: name a folder in it."
        raise InvalidInput(text, code="TOO_WIDE")
    return folder


def add_shown(path: str) -> Path:
    """Add a folder whose real path the page has shown. Raises as `narrow` and `add`, and Conflict
    if the path has become a link."""
    folder = narrow(path)
    if str(folder) != path:
        raise Conflict(f"{path} leads elsewhere by now. Enter its path again.")
    return _add(folder)


def remove(path: str) -> Path:
    """Take back an added base. What was ingested from it stays. Raises NotFound, Conflict
    BASES_FIXED, and Unavailable if it cannot be written."""
    _refuse_fixed(path)
    with _changing:
        stored = _stored()
        if Path(path) not in stored:
            raise NotFound(f"{path} is no folder that was added.")
        _write(tuple(base for base in stored if base != Path(path)))
    logger.info("ingest base removed", extra={"context": {"path": path}})
    return Path(path)


def _refuse_fixed(path: str) -> None:
    if not is_fixed():
        return
    where = (
        "In a container, folders are mounted below /data"
        if config().in_container
        else f"CODEINFO_INGEST_BASE is set: add {path} to it, then restart codeinfo"
    )
    raise Conflict(f"{where}.", code="BASES_FIXED")


def _suitable(path: str) -> Path:
    _refuse_fixed(path)
    if not _is_plain(path):
        raise InvalidInput("path: must be an absolute path.")
    folder = Path(os.path.realpath(path))
    try:
        with os.scandir(folder):
            pass
    except NotADirectoryError:
        raise InvalidInput(f"{folder} is not a folder.", code="NOT_DIRECTORY") from None
    except PermissionError:
        raise InvalidInput(f"{folder} cannot be read.", code="NOT_READABLE") from None
    except OSError as error:
        raise NotFound(f"{folder} does not exist: {error.strerror}.") from None
    if folder.parent == folder:
        raise InvalidInput("The whole file system is too much: name a folder.", code="TOO_WIDE")
    refuse_own_data(folder)
    return folder


def _file() -> Path:
    return config().data_dir.absolute() / NAME


def _stored() -> tuple[Path, ...]:
    """Return the folders of the file. A file that cannot be read, or is malformed, has none."""
    try:
        with open(posix.open_nofollow(_file()), "rb") as file:
            paths = json.loads(file.read(MOST_BYTES))["bases"]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        logger.warning("added folders are not known", extra={"context": {"reason": str(error)}})
        return ()
    is_list = isinstance(paths, list)
    usable = [path for path in paths if isinstance(path, str)] if is_list else []
    return tuple(Path(path) for path in usable[:MOST_BASES] if _is_plain(path))


def _is_plain(path: str) -> bool:
    return os.path.isabs(path) and "\0" not in path and not has_surrogates(path)


def _write(paths: tuple[Path, ...]) -> None:
    file, content = _file(), json.dumps({"bases": [str(path) for path in paths]}, indent=1)
    try:
        posix.replace_file(file, content.encode())
    except OSError as error:
        raise Unavailable(
            f"{file} cannot be written: {error.strerror}.", retryable=False
        ) from error
