"""What a repository of this machine is fetched from: file:// addresses.

To serve a repository, git would obey the configuration in it. So it serves an empty repository of
ours, which only borrows the objects of the other one.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.ingest.bases import bases
from apps.ingest.discovery.checkout import checkout, commit_of
from apps.ingest.discovery.own_data import refuse_own_data
from apps.ingest.discovery.refusal import refused as not_read
from apps.ingest.discovery.repository import (
    Repository,
    check_owner,
    common_dir,
    repository_at,
)
from apps.ingest.remote.address import RemoteAddress, refused
from apps.ingest.remote.bare import make_bare
from apps.ingest.remote.lenders import check_lenders

REF = "refs/heads/wanted"
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@contextmanager
def lent_source(remote: RemoteAddress) -> Iterator[tuple[str, str]]:
    """Provide URL and ref for git. Raises InvalidInput URL_REFUSED for a file:// address that is
    not beneath the ingest bases, and Unavailable GIT_FAILED for a repository that is not read."""
    if remote.scheme != "file":
        yield remote.url, remote.ref or "HEAD"
        return
    repository = _repository(remote)
    check_lenders(repository)
    common = common_dir(repository.git_dir)
    if not str(common).isprintable():
        raise not_read("has a path that cannot be shown")
    if (common / "shallow").exists() or (common / "reftable").exists():
        raise not_read("is a shallow clone, or has a reftable: ingest its folder instead")
    commit = _commit(repository, common, remote.ref)
    if not commit:
        raise not_read(f"has no commit named {remote.ref or 'HEAD'!r}")
    with TemporaryDirectory(prefix="codeinfo-git-") as folder:
        bare = Path(folder)
        make_bare(bare, commit)
        (bare / "objects/info").mkdir()
        (bare / "objects/info/alternates").write_bytes(os.fsencode(common / "objects") + b"\n")
        (bare / "refs/heads").mkdir()
        (bare / REF).write_text(f"{commit}\n")
        yield f"file://{bare}", REF


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
            raise refused(f"{path} is no git repository.")
    except OSError as error:
        raise refused(f"{path} cannot be read: {error.strerror}.") from None
    return Repository(path, path)


def _commit(repository: Repository, common: Path, ref: str) -> str:
    if not ref:
        return checkout(repository).commit
    names = (f"refs/heads/{ref}", f"refs/tags/{ref}")
    found = next(filter(None, (commit_of(common, name) for name in names)), "")
    return found or (ref if _ID.fullmatch(ref) else "")
