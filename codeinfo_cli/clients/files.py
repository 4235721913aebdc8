"""Files of other programs: read whole, compared, and replaced at once."""

import difflib
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 8 * 2**20
MAX_DIFF_LINES, MAX_DIFF_WIDTH = 400, 200


class Refused(Exception):
    """A file is left as it is; the message is a sentence for the user."""


@dataclass(frozen=True)
class Change:
    """A change of a file.

    path: as the client knows it. target: the file itself, if `path` is a link.
    before, after: its bytes; None if there is no file.
    """

    path: Path
    target: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The change as a unified diff, for people: long lines are cut."""
        old, new = ((part or b"").decode(errors="replace") for part in (self.before, self.after))
        one, other = (
            "/dev/null" if part is None else str(self.path) for part in (self.before, self.after)
        )
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), one, other, lineterm="")
        cut = [_cut(line) for line in lines]
        if len(cut) > MAX_DIFF_LINES:
            cut[MAX_DIFF_LINES:] = [f"… {len(cut) - MAX_DIFF_LINES} more lines"]
        return "\n".join(cut)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_DIFF_WIDTH else f"{line[:MAX_DIFF_WIDTH]}…"


def read(path: Path) -> tuple[Path, bytes | None]:
    """Return the file that a path leads to, and its bytes; None if it does not exist.

    Raises Refused.
    """
    try:
        target = path.resolve()
        with target.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{path} is not a regular file.")
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return target, None
    except (OSError, RuntimeError) as error:
        raise Refused(f"{path} cannot be read: {_reason(error)}.") from None
    if len(content) > MAX_BYTES:
        raise Refused(f"{path} is larger than {MAX_BYTES // 2**20} MiB.")
    return target, content


def check_writable(change: Change) -> None:
    """Raise Refused if the file is read-only. (Replacing it would succeed nevertheless.)"""
    if change.before is None:
        return
    with suppress(FileNotFoundError):
        mode = change.target.stat().st_mode
        if not mode & 0o222 or not os.access(change.target, os.W_OK):
            raise Refused(f"{change.path} is read-only.")


def missing_folders(change: Change) -> list[Path]:
    """Return the folders that `write` creates. Raises Refused."""
    try:
        return [one for one in reversed(change.target.parents) if not one.exists()]
    except OSError as error:
        raise Refused(f"{change.path} cannot be written: {_reason(error)}.") from None


def write(change: Change) -> None:
    """Replace the file, with its mode, or remove it. Folders that are missing are created.

    Raises Refused, also if the file has changed since it was read.
    """
    check_writable(change)
    try:
        for folder in missing_folders(change):
            folder.mkdir(exist_ok=True)
        if change.after is None:
            _check_unchanged(change)
            change.target.unlink(missing_ok=True)
            return
        mode = 0o600 if change.before is None else stat.S_IMODE(change.target.stat().st_mode)
        descriptor, name = tempfile.mkstemp(dir=change.target.parent, prefix=".codeinfo-")
        try:
            with open(descriptor, "wb") as file:
                file.write(change.after)
                os.fchmod(descriptor, mode)
                file.flush()
                os.fsync(descriptor)
            _check_unchanged(change)
            os.replace(name, change.target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Refused(f"{change.path} cannot be written: {_reason(error)}.") from None


def _check_unchanged(change: Change) -> None:
    target, now = read(change.path)
    if (target, now) != (change.target, change.before):
        raise Refused(f"{change.path} was changed by another program meanwhile. Try again.")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
