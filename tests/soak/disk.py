"""A small disk of our own, that can be full without anybody else noticing: an image, mounted."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

IMAGE_BYTES = 192 << 20
BALLAST = "ballast"


class Disk:
    """`folder` is where it is mounted, or a plain folder where the system does not let us mount:
    `can_be_full` then is False, and that fault is left out."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if not image.exists():
            with image.open("wb") as file:
                file.truncate(IMAGE_BYTES)
            _try("mkfs.ext4", "-q", "-m", "0", str(image))
        self.can_be_full = os.path.ismount(folder) or _try(
            "mount", "-o", "loop", str(image), str(folder)
        )

    def fill(self, left: int) -> None:
        """Fill it up to `left` bytes."""
        with suppress(OSError), (self.folder / BALLAST).open("wb") as file:
            while (free := self._free()) > left:
                file.write(bytes(min(free - left, 4 << 20)))
                file.flush()

    def free(self) -> None:
        (self.folder / BALLAST).unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it; the image keeps what is in it."""
        if self.can_be_full:
            _try("umount", str(self.folder)) or _try("umount", "-l", str(self.folder))

    def _free(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize


def _try(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False
