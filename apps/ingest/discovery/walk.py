"""Lists the files of a folder: from git, or by a walk that honours .gitignore files."""

from collections.abc import Container, Iterator
from typing import NamedTuple

from apps.index.root_directory import (
    MAX_DEPTH,
    SYMBOLIC_LINK,
    TOO_DEEP,
    Entry,
    RootDirectory,
    is_unreadable,
    reason_of,
)
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery import gitignore
from apps.ingest.discovery.eligibility import Rules
from apps.ingest.discovery.gitignore import Ignores

IGNORED = "Ignored by .gitignore"
RULES_UNREADABLE = "Its .gitignore cannot be read"
NOT_CHECKED_OUT = "Not checked out"


class ListedFile(NamedTuple):
    """A file, or a folder that is not entered."""

    path: str  # relative to the root; that of a folder ends with a slash
    reason: str = ""  # why it is skipped; "" if that is not decided yet
    unreadable: bool = False  # as in `Skipped`


def from_git(paths: list[str], rules: Rules) -> Iterator[ListedFile]:
    """Yield tracked files. An excluded folder is one entry instead of its files."""
    pruned: set[str] = set()
    excluded: dict[str, str | None] = {"": None}
    for path in paths:
        if path.count("/") > MAX_DEPTH:
            yield ListedFile(path, TOO_DEEP)
            continue
        folder, _, name = path.removesuffix("/").rpartition("/")
        if folder not in excluded:
            excluded[folder] = rules.excluded_folder(folder)
        if above := excluded[folder]:
            if above not in pruned:
                pruned.add(above)
                yield ListedFile(f"{above}/", rules.why_excluded(f"{above}/"))
        elif rules.excludes(path.removesuffix("/"), name):
            yield ListedFile(path, rules.why_excluded(path))
        else:
            yield ListedFile(path, NOT_CHECKED_OUT if path.endswith("/") or not path else "")


def walk(
    directory: RootDirectory,
    rules: Rules,
    check: Check = never_cancelled,
    *,
    closed: Container[str] = (),
) -> Iterator[ListedFile]:
    """Yield all files below a root. Links are not followed. `check` is called for each folder.

    closed: folders that are not entered, and not yielded; each ends with a slash
    """
    folders: list[tuple[str, Ignores | None]] = [("", None)]
    while folders:
        prefix, above = folders.pop()
        check()
        try:
            listed = directory.entries(prefix)
        except OSError as error:
            yield ListedFile(prefix, reason_of(error), is_unreadable(error))
            continue
        ignores = above
        if any(entry.name == gitignore.NAME for entry in listed):
            try:
                ignores = gitignore.read_ignores(directory, prefix, above)
            except OSError:
                # The ignored files may be private, or very many. So the folder is skipped until its
                # .gitignore can be read.
                yield ListedFile(prefix, RULES_UNREADABLE, unreadable=True)
                continue
        for entry in listed:
            file = _listed(entry, prefix, ignores, rules)
            if file.reason or not file.path.endswith("/"):
                yield file
            elif file.path not in closed:
                folders.append((file.path, ignores))


def _listed(entry: Entry, prefix: str, ignores: Ignores | None, rules: Rules) -> ListedFile:
    """Return an entry of a folder. A folder without a reason is to be entered."""
    path = prefix + entry.name
    if entry.is_link:
        return ListedFile(path, SYMBOLIC_LINK)
    shown = f"{path}/" if entry.is_folder else path
    if rules.excludes(path, entry.name):
        return ListedFile(shown, rules.why_excluded(shown))
    if ignores and ignores.ignored(path, is_folder=entry.is_folder):
        return ListedFile(shown, IGNORED)
    if shown.endswith("/") and shown.count("/") > MAX_DEPTH:
        return ListedFile(shown, TOO_DEEP)
    if ignores and path == ignores.path:
        return ListedFile(shown, ignores.problem)
    return ListedFile(shown)
