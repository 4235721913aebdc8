"""Absolute paths of a root's files, in this process's file system and on the host."""

import posixpath
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from apps.core.config import config
from apps.index.models import Root

CONTAINER_BASE = PurePosixPath("/data")
UNMAPPED = "HOST_INGEST_DIR not set; using container path base"


@dataclass(frozen=True)
class MappedPath:
    """The two absolute paths of a file."""

    container_path: str  # as this process opens it
    host_path: str  # as the user's machine names it
    warning: str | None = None  # set in a container without HOST_INGEST_DIR


def map_path(root: Root, rel_path: str = "") -> MappedPath:
    """Return the two absolute paths of a file. `rel_path` is the stored relative path.

    Only the root is mapped, so that a root deeper than /data/<name>, or outside /data, retains its
    whole path (docs/contract.md §4.5, docs/decisions.md B31).
    """
    k = config()
    here, host = _mapped(root.path, k.host_ingest_dir)
    warning = UNMAPPED if k.in_container and not k.host_ingest_dir else None
    if not rel_path:
        return MappedPath(here, host, warning)
    path = posixpath.join(here, rel_path)
    # Mostly they are the same, and a search maps every row.
    return MappedPath(path, path if host == here else posixpath.join(host, rel_path), warning)


def host_path(path: str) -> str:
    """Return the path of a root as the user's machine names it."""
    return _mapped(path, config().host_ingest_dir)[1]


@lru_cache
def _mapped(root: str, host_dir: str) -> tuple[str, str]:
    """Return the two paths of a root. Cached, as a search maps every row."""
    here = PurePosixPath(root)
    if not host_dir or not here.is_relative_to(CONTAINER_BASE):
        return str(here), str(here)
    return str(here), str(PurePosixPath(host_dir) / here.relative_to(CONTAINER_BASE))
