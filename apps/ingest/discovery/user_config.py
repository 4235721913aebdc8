"""Reads the git configuration of the user who runs codeinfo, never that of a repository
(https://git-scm.com/docs/git-config, https://git-scm.com/docs/gitignore)."""

import os
from pathlib import Path

from dulwich.config import ConfigFile

from apps.core.config import config
from apps.ingest.discovery.gitignore import MAX_BYTES


def setting(section: bytes, name: bytes) -> str | None:
    """Return a value of the configuration; None if it has none. A file that is broken or cannot be
    read counts as none."""
    value = None
    # The later file takes precedence.
    for file in (config().xdg_config_home / "git/config", config().git_config):
        try:
            if file.is_file():
                value = os.fsdecode(ConfigFile.from_path(file).get((section,), name))
        except (KeyError, OSError, ValueError):
            continue
    return value


def excludes() -> bytes:
    """Return the content of the user's own ignore file (`core.excludesFile`), up to the limit of
    ignore files; b"" if there is none, or if it cannot be read, as in git."""
    named = setting(b"core", b"excludesfile")
    try:
        default = config().xdg_config_home / "git/ignore"
        path = default if named is None else Path(named).expanduser()
        if not path.is_absolute() or not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError):  # the last: an unknown user in `~user`
        return b""
