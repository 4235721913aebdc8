"""Reads the ignore file of the user who runs codeinfo (`core.excludesFile`).

It is named by the user's own git configuration, never by that of a repository
(https://git-scm.com/docs/git-config, https://git-scm.com/docs/gitignore).
"""

import os
from pathlib import Path

from dulwich.config import ConfigFile

from apps.core.config import config
from apps.ingest.discovery.gitignore import MAX_BYTES


def read() -> bytes:
    """Return the content of the file, up to the limit of ignore files; b"" if there is none, or if
    it cannot be read, as in git."""
    try:
        path = _path()
        if not path or not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError):  # the last: an unknown user in `~user`
        return b""


def _path() -> Path | None:
    folder = config().xdg_config_home / "git"
    path: Path | None = folder / "ignore"
    # The later file takes precedence.
    for file in (folder / "config", config().git_config):
        if not file.is_file():
            continue
        try:
            value = os.fsdecode(ConfigFile.from_path(file).get((b"core",), b"excludesfile"))
        except KeyError:
            continue
        path = Path(value).expanduser() if value else None
    return path if path and path.is_absolute() else None
