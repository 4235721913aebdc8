"""Finds the commit that a name means, as git does, with the references that our own code reads."""

import re

from apps.core.errors import NotFound
from apps.ingest.discovery.checkout import named_commit
from apps.ingest.discovery.repository import common_dir
from apps.lookup.git.objects import Git

MAX_NAME = 255
_NAME = re.compile(r"([^\s~^:?*\[\\]+)((?:~\d{0,4}|\^\d?){0,4})")
_DIGITS = re.compile(r"[0-9a-f]{7,64}")


class CommitNotFound(NotFound):
    """No commit has this name."""

    code = "REF_NOT_FOUND"


def commit_named(git: Git, name: str) -> str:
    """Return the id of the commit that a branch, a tag, `HEAD`, or an id means, perhaps with
    `~2` or `^` behind it. An id may be cut to seven digits. Raises CommitNotFound."""
    match = _NAME.fullmatch(name) if len(name) <= MAX_NAME else None
    base = _base(git, match[1]) if match else ""
    commit = git.object_id(f"{base}{match[2]}^{{commit}}") if match and base else ""
    if not commit:
        raise CommitNotFound(f"No branch, tag or commit is named {name[:MAX_NAME]!r}.")
    return commit


def _base(git: Git, name: str) -> str:
    if name in ("HEAD", "@"):
        return git.head
    found = named_commit(common_dir(git.repository.git_dir), name)
    return found or (name if _DIGITS.fullmatch(name) else "")
