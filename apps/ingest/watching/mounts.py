"""Which file systems others share."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

from apps.index.models import Root

# File systems whose files others change: another machine, the host of a container, a program.
SHARED = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "vboxsf", "prl_fs", "afs", "ceph")
LOCAL_FUSE = ("fuseblk",)
# The kernel writes blanks and backslashes like this.
OCTAL = re.compile(r"\\(0[0-7]{2}|1[0-7]{2})")
MOUNTS = Path("/proc/self/mountinfo")


def shared(roots: Iterable[Root]) -> set[UUID]:
    """Return the ids of those roots whose file system others share: the kernel does not tell of
    every change there, and it may stop answering. Where that is not known, none."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    mounted = [_point_and_kind(line) for line in lines]
    return {root.id for root in roots if _is_shared(f"{root.path}/", mounted)}


def _point_and_kind(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" - ")
    point = OCTAL.sub(lambda code: chr(int(code[1], 8)), left.split(" ")[4])
    return point.rstrip("/") + "/", right.split(" ")[0]


def _is_shared(folder: str, mounted: Sequence[tuple[str, str]]) -> bool:
    # The last of equal ones is on top.
    above = (one for one in reversed(mounted) if folder.startswith(one[0]))
    _, kind = max(above, key=lambda one: len(one[0]), default=("", ""))
    return kind.startswith(SHARED) and kind not in LOCAL_FUSE
