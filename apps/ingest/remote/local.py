"""What a repository of this machine is taken from: file:// addresses.

To serve a repository, git would obey the configuration in it. So nothing is fetched: our own
repository borrows the objects of the other one, and our own code reads its references.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from apps.core.errors import Unavailable
from apps.ingest.bases import bases
from apps.ingest.discovery.checkout import checkout, named_commit
from apps.ingest.discovery.own_data import refuse_own_data
from apps.ingest.discovery.refusal import refused as not_read
from apps.ingest.discovery.repository import Repository, check_owner, common_dir, repository_at
from apps.ingest.remote.address import RemoteAddress, refused
from apps.ingest.remote.bare import boundary_of
from apps.ingest.remote.lenders import check_lenders

# The id of a commit, which may be cut to seven digits.
_ID = re.compile(r"[0-9a-f]{7,64}")


class Source(NamedTuple):
    """objects: the folder of the objects
    name: hexadecimal; the id of a commit or a tag, perhaps cut
    boundary: of a shallow clone (`boundary_of`)
    is_sha256: the kind of all ids"""

    objects: Path
    name: str
    boundary: frozenset[str]
    is_sha256: bool


def source_of(remote: RemoteAddress) -> Source:
    """Return where the objects of a file:// address are, and what its ref means now. Raises
    InvalidInput URL_REFUSED for an address that is not beneath the ingest bases, and Unavailable
    CLONE_FAILED if it has no such ref, or GIT_FAILED for a repository that is not read."""
    repository = _repository(remote)
    check_lenders(repository)
    common = common_dir(repository.git_dir)
    if not str(common).isprintable():
        raise not_read("has a path that cannot be shown")
    if (common / "reftable").exists():
        raise not_read("has its references in a reftable, which codeinfo does not read")
    head = checkout(repository).commit
    name = _named(common, remote.ref, head)
    if not name:
        message = f"It has no branch, tag or commit named {remote.ref or 'HEAD'!r}."
        raise Unavailable(f"The repository was not fetched. {message}", code="CLONE_FAILED")
    return Source(common / "objects", name, boundary_of(common), len(head or name) == 64)


def _repository(remote: RemoteAddress) -> Repository:
    path = Path(os.path.realpath(remote.path))
    if not any(path.is_relative_to(base) for base in bases()):
        raise refused("A file:// address must be beneath the folders that may be ingested.")
    try:
        refuse_own_data(path)
        if found := repository_at(path):
            return found
        check_owner(path)
        if not (path / "objects").is_dir() or not (path / "HEAD").is_file():
            raise refused(f"{path} is no git repository, or not the top folder of one.")
    except OSError as error:
        raise refused(f"{path} cannot be read: {error.strerror}.") from None
    return Repository(path, path)


def _named(common: Path, ref: str, head: str) -> str:
    if ref in ("", "HEAD"):
        return head
    return named_commit(common, ref) or (ref if _ID.fullmatch(ref) else "")
