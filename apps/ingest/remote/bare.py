"""The empty bare repository in which git runs."""

from collections.abc import Iterable
from pathlib import Path

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


def make_bare(folder: Path, commit: str, boundary: Iterable[str] = ()) -> None:
    """Make an empty bare repository in an empty folder.

    commit: an id, whose length tells the kind of all ids; "" for SHA-1
    boundary: ids of the commits of a shallow clone whose parents are not there
    """
    for name in ("objects", "refs"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text(CONFIG.format("sha256" if len(commit) == 64 else "sha1"))
    # An empty file would make git ignore the graph of commits.
    if shallow := "".join(f"{one}\n" for one in sorted(boundary)):
        (folder / "shallow").write_text(shallow)
