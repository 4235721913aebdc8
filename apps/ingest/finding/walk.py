"""The two ways to list a folder: what git tracks, or a walk that honours .gitignore files.

Both yield `Found`: a path relative to the root, and a reason where it is already known to be left
out. A pruned folder is one `Found` whose path ends with a slash.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from apps.ingest.finding.eligibility import Rules
from apps.ingest.finding.files import SYMBOLIC_LINK, UNREADABLE, Beneath, read_up_to
from codeinfo.errors import Unavailable

IGNORED = "Ignored by .gitignore"
GIT_SECONDS = 120
NO_REPOSITORY = b"not a git repository"
# A folder's own settings must not name a program for git to run, and its owner does not matter to a
# reader.
GIT_OPTIONS = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
MAX_GITIGNORE_BYTES = 1_000_000


class Found(NamedTuple):
    path: str
    reason: str = ""


def tracked(root: Path) -> list[str] | None:
    """The paths that git tracks beneath `root`; None outside a work tree, or without git.

    Names that are no UTF-8 carry surrogate escapes. Raises Unavailable, code GIT_FAILED, with what
    git said.
    """
    # GIT_DIR and its like, as a hook sets them, would answer for another repository.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *GIT_OPTIONS, "-C", os.fspath(root), "ls-files", "-z"]
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Unavailable(f"git ls-files failed: {error}", code="GIT_FAILED") from error
    if done.returncode == 0:
        # A path in conflict is listed once for each of its sides.
        return list(dict.fromkeys(filter(None, os.fsdecode(done.stdout).split("\0"))))
    if NO_REPOSITORY in done.stderr:
        return None
    said = done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.returncode}"
    raise Unavailable(f"git ls-files failed: {said}", code="GIT_FAILED")


def from_git(paths: list[str], rules: Rules) -> Iterator[Found]:
    """Tracked paths, those in excluded folders folded into one entry for the folder."""
    pruned: set[str] = set()
    excluded: dict[str, str | None] = {"": None}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in excluded:
            excluded[folder] = rules.excluded_folder(folder)
        if above := excluded[folder]:
            if above not in pruned:
                pruned.add(above)
                yield Found(f"{above}/", _excluded(f"{above}/"))
        else:
            yield Found(path, _excluded(path) if rules.excludes(path, name) else "")


def _excluded(path: str) -> str:
    slash = "/" if path.endswith("/") else ""
    return f"Excluded: {path.rstrip('/').rpartition('/')[2]}{slash}"


@dataclass(frozen=True, slots=True)
class Ignores:
    """The .gitignore files that speak for a folder: its own, and those above it."""

    base: str
    spec: GitIgnoreSpec
    above: "Ignores | None"


def _is_ignored(path: str, ignores: Ignores | None) -> bool:
    """The nearest file that says anything about a path decides, as git has it."""
    while ignores is not None:
        verdict = ignores.spec.check_file(path.removeprefix(ignores.base)).include
        if verdict is not None:
            return verdict
        ignores = ignores.above
    return False


def walk(root: Path, beneath: Beneath, rules: Rules) -> Iterator[Found]:
    """Every file below `root`, links and special files with their reason, never followed."""
    folders: list[tuple[str, Ignores | None]] = [("", None)]
    while folders:
        prefix, above = folders.pop()
        try:
            with os.scandir(f"{root}/{prefix}") as entries:
                listed = list(entries)
        except OSError:
            yield Found(prefix, UNREADABLE)
            continue
        ignores = above
        if any(entry.name == ".gitignore" for entry in listed):
            ignores = _read_gitignore(beneath, prefix, above)
        for entry in listed:
            found = _look(entry, prefix, ignores, rules)
            if found.reason or not found.path.endswith("/"):
                yield found
            else:
                folders.append((found.path, ignores))


def _look(entry: os.DirEntry[str], prefix: str, ignores: Ignores | None, rules: Rules) -> Found:
    """What one entry is; a folder without a reason is to be gone into. What else is no regular file
    is told when it is looked at."""
    path = prefix + entry.name
    if entry.is_symlink():
        return Found(path, SYMBOLIC_LINK)
    shown = f"{path}/" if entry.is_dir(follow_symlinks=False) else path
    if rules.excludes(path, entry.name):
        return Found(shown, _excluded(shown))
    if ignores and _is_ignored(shown, ignores):
        return Found(shown, IGNORED)
    return Found(shown)


def _read_gitignore(beneath: Beneath, prefix: str, above: Ignores | None) -> Ignores | None:
    try:
        descriptor, _ = beneath.open(f"{prefix}.gitignore")
    except OSError:
        return above
    try:
        lines = read_up_to(descriptor, MAX_GITIGNORE_BYTES).decode("utf-8", "replace").splitlines()
    finally:
        os.close(descriptor)
    try:
        return Ignores(prefix, GitIgnoreSpec.from_lines(lines), above)
    except ValueError:
        # A pattern that cannot be read says nothing, as in git.
        return Ignores(prefix, GitIgnoreSpec.from_lines(_readable(lines)), above)


def _readable(lines: list[str]) -> Iterator[str]:
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        yield line
