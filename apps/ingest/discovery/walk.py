"""The two ways to list a folder: what git tracks, or a walk that honours .gitignore files.

Both yield `Found`: a path relative to the root, and a reason where it is already known to be left
out. A pruned folder is one `Found` whose path ends with a slash.
"""

from collections.abc import Iterator
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


class Found(NamedTuple):
    path: str
    reason: str = ""
    unreadable: bool = False


def from_git(paths: list[str], rules: Rules) -> Iterator[Found]:
    """Tracked paths, those in excluded folders folded into one entry for the folder."""
    pruned: set[str] = set()
    excluded: dict[str, str | None] = {"": None}
    for path in paths:
        if path.count("/") > MAX_DEPTH:
            yield Found(path, TOO_DEEP)
            continue
        folder, _, name = path.removesuffix("/").rpartition("/")
        if folder not in excluded:
            excluded[folder] = rules.excluded_folder(folder)
        if above := excluded[folder]:
            if above not in pruned:
                pruned.add(above)
                yield Found(f"{above}/", rules.why_excluded(f"{above}/"))
        elif rules.excludes(path.removesuffix("/"), name):
            yield Found(path, rules.why_excluded(path))
        else:
            yield Found(path, NOT_CHECKED_OUT if path.endswith("/") or not path else "")


def walk(beneath: RootDirectory, rules: Rules, check: Check = never_cancelled) -> Iterator[Found]:
    """Every file below a root, links and special files with their reason, never followed. `check`
    is called for each folder."""
    folders: list[tuple[str, Ignores | None]] = [("", None)]
    while folders:
        prefix, above = folders.pop()
        check()
        try:
            listed = beneath.entries(prefix)
        except OSError as error:
            yield Found(prefix, reason_of(error), is_unreadable(error))
            continue
        ignores = above
        if any(entry.name == gitignore.NAME for entry in listed):
            try:
                ignores = gitignore.read_ignores(beneath, prefix, above)
            except OSError:
                # What it leaves out may be private, or very much: the folder waits until it can be
                # read, like one that cannot be listed.
                yield Found(prefix, RULES_UNREADABLE, unreadable=True)
                continue
        for entry in listed:
            found = _look(entry, prefix, ignores, rules)
            if found.reason or not found.path.endswith("/"):
                yield found
            else:
                folders.append((found.path, ignores))


def _look(entry: Entry, prefix: str, ignores: Ignores | None, rules: Rules) -> Found:
    """What one entry is; a folder without a reason is to be gone into. What else is no regular file
    is told when it is looked at."""
    path = prefix + entry.name
    if entry.is_link:
        return Found(path, SYMBOLIC_LINK)
    shown = f"{path}/" if entry.is_folder else path
    if rules.excludes(path, entry.name):
        return Found(shown, rules.why_excluded(shown))
    if ignores and ignores.ignored(path, is_folder=entry.is_folder):
        return Found(shown, IGNORED)
    if shown.endswith("/") and shown.count("/") > MAX_DEPTH:
        return Found(shown, TOO_DEEP)
    if ignores and path == ignores.path:
        return Found(shown, ignores.problem)
    return Found(shown)
