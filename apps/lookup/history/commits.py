"""Commits, as `git log` writes them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.ingest.discovery.secrets import holds_secret
from apps.lookup.git import Git
from apps.lookup.symbols.types import filled

FORMAT = "--format=%H%n%aI%n%an%n%B"
LOG = ("log", "-z", "--no-color", "--no-notes", "--no-mailmap", "--encoding=UTF-8", FORMAT)
# Characters of a message, and of a name.
MAX_MESSAGE, MAX_NAME = 600, 80
SECRET = "(The message is left out: it holds a secret.)"


@dataclass(frozen=True)
class Commit:
    """A commit. Addresses of mail are left out."""

    id: str
    date: str  # when its author made it, ISO 8601; "" if that is not known
    author: str
    message: str  # its beginning
    is_boundary: bool  # of a shallow clone: what it seems to add may be older

    def as_wire(self) -> dict[str, Any]:
        return {
            "commit": self.id,
            "date": self.date,
            "author": self.author,
            "message": self.message,
            **filled(boundary=self.is_boundary),
        }


def commits_of(git: Git, *arguments: str) -> list[Commit]:
    """The commits that these arguments of `git log` select. Raises as `Git.run`."""
    return _commits(git, git.run(*LOG, *arguments))


def commits_with(git: Git, ids: Iterable[str]) -> dict[str, Commit]:
    """The commits with these ids. Raises as `Git.run`."""
    names = "".join(f"{one}\n" for one in ids)
    if not names:
        return {}
    output = git.run(*LOG, "--no-walk=unsorted", "--stdin", data=names.encode())
    return {one.id: one for one in _commits(git, output)}


def _commits(git: Git, output: bytes) -> list[Commit]:
    texts = output.decode("utf-8", "replace").split("\0")
    return [_commit(git, text) for text in texts if text.strip()]


def _commit(git: Git, text: str) -> Commit:
    name, date, author, message = (*text.lstrip("\n").split("\n", 3), "")[:4]
    cut = SECRET if holds_secret("", message.encode()) else message.strip()
    # For one that it cannot read, git repeats the placeholder.
    date = date if date[:1].isdigit() else ""
    if len(cut) > MAX_MESSAGE:
        cut = f"{cut[:MAX_MESSAGE]}…"
    return Commit(name, date, author[:MAX_NAME], cut, name in git.boundary)
