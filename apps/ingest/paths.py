"""Where a file of a root is, as this process and as the user's machine call it."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from apps.ingest.models import Root
from codeinfo.conf import knobs

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
    whole path (contracts.md §4.5, decisions.md 15).
    """
    k = knobs()
    here = PurePosixPath(root.path)
    host = here
    if k.host_ingest_dir and here.is_relative_to(CONTAINER_BASE):
        host = PurePosixPath(k.host_ingest_dir) / here.relative_to(CONTAINER_BASE)
    warning = UNMAPPED if k.in_container and not k.host_ingest_dir else None
    return MappedPath(str(here / rel_path), str(host / rel_path), warning)
