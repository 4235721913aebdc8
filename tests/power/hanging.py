"""A file system that passes all through to a folder, and stops answering while a file exists:
`python -m tests.power.hanging BACKING MOUNTPOINT FILE`."""

import sys
import time
from pathlib import Path

import mfusepy as fuse

from tests.power.filesystem import Recorder


class Hanging(Recorder):
    def __init__(self, backing: Path, hangs: Path) -> None:
        super().__init__(backing)
        self._hangs = hangs

    def real(self, path: str) -> str:
        while self._hangs.exists():
            time.sleep(0.01)
        return super().real(path)


def main() -> None:
    backing, mountpoint, hangs = sys.argv[1:]
    system = Hanging(Path(backing), Path(hangs))
    fuse.FUSE(system, mountpoint, foreground=True, nothreads=True, default_permissions=True)


if __name__ == "__main__":
    main()
