"""Whether the kernel tells of every change of a folder."""

import os
from pathlib import Path

# File systems whose files others change: another machine, the host of a container, a program.
SHARED = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "vboxsf", "prl_fs", "afs", "ceph")
LOCAL_FUSE = ("fuseblk",)
MOUNTS = Path("/proc/self/mountinfo")


def tells(folder: str) -> bool:
    """Whether a change of a file in this folder is always told. Where that is not known, True."""
    kind = _kind_of(os.path.realpath(folder))
    return kind in LOCAL_FUSE or not kind.startswith(SHARED)


def _kind_of(folder: str) -> str:
    """Return the type of the file system of a folder; "" if it is not known."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    kind, longest = "", -1
    for line in lines:
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4].encode("latin-1", "replace").decode("unicode_escape")
        is_above = f"{folder}/".startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= longest:
            kind, longest = right.split(" ")[0], len(point)
    return kind
