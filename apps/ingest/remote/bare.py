"""The empty bare repository in which git runs."""

import re
from collections.abc import Iterable
from pathlib import Path

from apps.core.system import posix
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.refusal import refused

NO_HEAD = "ref: refs/heads/none\n"
MAX_SHALLOW = 4_000_000  # bytes; a boundary of 100,000 commits
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")

CONFIG = """\
[core]
	repositoryFormatVersion = 1
	bare = true
	attributesFile = /dev/null
	bigFileThreshold = 8m
	packedGitWindowSize = 32m
	packedGitLimit = 256m
[extensions]
	objectFormat = {}
"""


def config_for(*, is_sha256: bool) -> str:
    """Return the configuration of a repository with ids of this kind."""
    return CONFIG.format("sha256" if is_sha256 else "sha1")


def make_bare(folder: Path, commit: str, boundary: Iterable[str] = ()) -> None:
    """Make an empty bare repository in an empty folder.

    commit: an id, whose length tells the kind of all ids; "" for SHA-1
    boundary: ids of the commits of a shallow clone whose parents are not there
    """
    for name in ("objects", "refs"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text(NO_HEAD)
    (folder / "config").write_text(config_for(is_sha256=len(commit) == 64))
    write_boundary(folder, boundary)


def write_boundary(folder: Path, boundary: Iterable[str]) -> None:
    """Tell git where the history of a repository of ours ends."""
    if shallow := "".join(f"{one}\n" for one in sorted(boundary)):
        posix.replace_file(folder / "shallow", shallow.encode())
    else:
        # An empty file would make git ignore the graph of commits.
        (folder / "shallow").unlink(missing_ok=True)


def boundary_of(common: Path) -> frozenset[str]:
    """Return the boundary of a shallow clone; empty for others. Raises Unavailable GIT_FAILED.

    common: its git directory (`common_dir`)
    """
    try:
        with RootDirectory(common) as directory:
            content = directory.read("shallow", MAX_SHALLOW + 1)
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from error
    lines = content.split()
    if len(content) > MAX_SHALLOW or not all(map(_ID.fullmatch, lines)):
        raise refused("is broken: its file `shallow` is damaged")
    return frozenset(line.decode() for line in lines)
