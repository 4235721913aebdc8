"""Which repositories a verb means, and how the paths of its results are shown.

In an ingested folder, a verb is about that repository, if no option says otherwise. Its paths are
relative to the current folder; others begin with the id of their repository. Both forms are
understood as arguments.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeinfo_cli.client import Client
from codeinfo_cli.errors import CliError
from codeinfo_cli.terminal import visible

# Repositories that an error lists.
MAX_NAMED = 20


@dataclass(frozen=True)
class Repository:
    """An ingested folder."""

    id: str
    folders: tuple[str, ...]  # absolute, without a slash at the end: the user's and the server's

    def path_in(self, path: str) -> str | None:
        """Return a path relative to the folder, "" for the folder itself; None if it is outside."""
        for folder in self.folders:
            if path == folder:
                return ""
            if path.startswith(f"{folder.rstrip('/')}/"):
                return path[len(folder.rstrip("/")) + 1 :]
        return None


@dataclass(frozen=True)
class Place:
    """A file or folder of a repository."""

    repository: str  # id
    path: str  # relative to the repository; "" for its folder


def repositories(client: Client) -> list[Repository]:
    """Return the ingested repositories."""
    rows = json.loads(client.get("/tools/ingested-repos"))["repos"]
    return [
        Repository(row["id"], tuple(dict.fromkeys((row["hostPath"], row["containerPath"]))))
        for row in rows
    ]


def here() -> str:
    """Return the real path of the current folder."""
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:
        raise CliError("The current folder does not exist any more.", "NO_FOLDER") from None


def containing(known: Sequence[Repository], path: str) -> Place | None:
    """Return the innermost repository that contains an absolute path, and the path in it."""
    pairs = [
        (candidate, inside)
        for candidate in known
        if (inside := candidate.path_in(path)) is not None
    ]
    if not pairs:
        return None
    repository, inside = min(pairs, key=lambda pair: len(pair[1]))
    return Place(repository.id, inside)


def chosen(client: Client, names: Sequence[str], every: bool) -> list[str]:
    """Return the value of a tool's argument `repository`: [] means all.

    names: ids or folders, of the option --repo
    every: the option --all
    """
    if every and not names:
        return []
    known = repositories(client)
    if names:
        return [_id(name, known) for name in names]
    place = containing(known, here())
    return [place.repository] if place else []


def _id(text: str, known: Sequence[Repository]) -> str:
    """Return the id of a repository that is named by its id, its folder's name, both in any case,
    or a path of its folder. Raises CliError."""
    path = os.path.realpath(os.path.expanduser(text))
    for is_meant in (
        lambda one: text == one.id,
        lambda one: text.lower() in (one.id.lower(), os.path.basename(one.folders[0]).lower()),
        lambda one: path in one.folders,
    ):
        if found := next(filter(is_meant, known), None):
            return found.id
    raise _unknown(text, [one.id for one in known])


def _unknown(name: str, ids: Sequence[str]) -> CliError:
    known = ", ".join(map(repr, ids[:MAX_NAMED])) or "none"
    message = f"No repository {name!r} is ingested. Repositories: {known}."
    return CliError(message, "REPO_NOT_FOUND")


def locate(client: Client, text: str, names: Sequence[str] = ()) -> Place:
    """Return the place that a PATH argument means.

    With --repo, it is a path in that repository. Otherwise it is a path of this machine, or
    begins with the id of a repository. Raises CliError.
    """
    known = repositories(client)
    path = os.path.normpath(os.path.join(here(), os.path.expanduser(text)))
    if names and not os.path.isabs(text):
        return Place(_id(names[0], known), "" if text in (".", "./") else os.path.normpath(text))
    on_disk = containing(known, path) or containing(known, os.path.realpath(path))
    if on_disk and os.path.lexists(path):
        return on_disk
    if named := _named(known, text):
        return named
    if on_disk:
        return on_disk
    ids = ", ".join(repr(repository.id) for repository in known[:MAX_NAMED]) or "none"
    message = f"{text!r} is in no ingested folder, and does not begin with the id of one ({ids})."
    raise CliError(message, "NOT_INGESTED", next_step="Ingest its folder: codeinfo ingest PATH")


def _named(known: Sequence[Repository], text: str) -> Place | None:
    """Return the place of `repository/path`. Ids may contain slashes: the longest one counts."""
    fitting = [
        candidate.id
        for candidate in known
        if text == candidate.id or text.startswith(f"{candidate.id}/")
    ]
    if not fitting:
        return None
    repository = max(fitting, key=len)
    rest = text[len(repository) + 1 :]
    return Place(repository, "" if rest in ("", ".") else os.path.normpath(rest))


def root_of(client: Client, name: str) -> dict[str, Any]:
    """Return the entry of GET /ingest/roots that a name or a folder means. Raises CliError."""
    roots: list[dict[str, Any]] = json.loads(client.get("/ingest/roots"))["roots"]
    path = os.path.realpath(os.path.expanduser(name))
    for root in roots:
        if root["name"] == name:
            return root
    for root in roots:
        if path in (root["path"], os.path.realpath(root["path"])):
            return root
    raise _unknown(name, [root["name"] for root in roots])


def here_or(client: Client, name: str) -> str:
    """Return `name`, or the repository that contains the current folder."""
    if name:
        return name
    place = containing(repositories(client), here())
    if place is None:
        raise CliError("The current folder is not ingested: name a repository.", "NOT_INGESTED")
    return place.repository


class Paths:
    """Shows the paths of results."""

    def __init__(self, known: Sequence[Repository] = ()) -> None:
        """known: the repositories of rows without `hostPath`"""
        self._folder = here().rstrip("/") + "/"
        self._folders = {repository.id: repository.folders[0].rstrip("/") for repository in known}

    def of(self, row: Mapping[str, Any]) -> str:
        """Return the path of a row of a tool, visible."""
        repository, path = row["repo"], row["relPath"]
        absolute = row.get("hostPath") or f"{self._folders.get(repository, '')}/{path}"
        shown = f"{repository}/{path}"
        root = absolute.removesuffix(f"/{path}")
        if absolute.startswith(self._folder):
            shown = absolute[len(self._folder) :]
        elif root and self._folder.startswith(f"{root}/"):
            shown = os.path.relpath(absolute, self._folder) + "/" * path.endswith("/")
        return visible(shown).replace("\t", "\\t")


def lines_of(row: Mapping[str, Any]) -> str:
    """Return "12-40", "12", or "" if the lines of a row are unknown."""
    start, end = row.get("startLine"), row.get("endLine")
    if not isinstance(start, int):
        return ""
    return str(start) if end in (None, start) else f"{start}-{end}"
