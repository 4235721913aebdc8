"""Where a file of a root is, as this process and as the user's machine call it."""

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
    """`warning` is set only inside a container that was not told where /data is on the host."""

    container_path: str
    host_path: str
    warning: str | None = None


def map_path(root: Root, rel_path: str = "") -> MappedPath:
    """The two absolute paths of a file. `rel_path` is the stored one: it is never derived again.

    Only the root is mapped, so that a root deeper than /data/<name>, or outside /data, keeps its
    whole path (docs/contract.md §4.5, docs/decisions.md B31).
    """
    k = config()
    here, host = _mapped(root.path, k.host_ingest_dir)
    warning = UNMAPPED if k.in_container and not k.host_ingest_dir else None
    return MappedPath(_join(here, rel_path), _join(host, rel_path), warning)


@lru_cache
def _mapped(root: str, host_dir: str) -> tuple[str, str]:
    """A root's own two paths: a search asks for them with every row."""
    here = PurePosixPath(root)
    if not host_dir or not here.is_relative_to(CONTAINER_BASE):
        return str(here), str(here)
    return str(here), str(PurePosixPath(host_dir) / here.relative_to(CONTAINER_BASE))


def _join(folder: str, rel_path: str) -> str:
    return posixpath.join(folder, rel_path) if rel_path else folder
