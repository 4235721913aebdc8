"""The two ways to list a folder: what git tracks, or a walk that honours .gitignore files.

Both yield `Found`: a path relative to the root, and a reason where it is already known to be left
out. A pruned folder is one `Found` whose path ends with a slash.
"""

import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from apps.ingest.finding.eligibility import Rules
from apps.ingest.finding.files import SPECIAL, SYMBOLIC_LINK, UNREADABLE, Beneath, read_up_to
from codeinfo.errors import Unavailable

IGNORED = "Ignored by .gitignore"
GIT_SECONDS = 120
NO_REPOSITORY = b"not a git repository"
# A folder's own settings must not name a program for git to run, and its owner does not matter to a
# reader.
GIT_OPTIONS = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
MAX_GITIGNORE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
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
        return list(dict.fromkeys(os.fsdecode(name) for name in done.stdout.split(b"\0") if name))
    if NO_REPOSITORY in done.stderr:
        return None
    said = done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.returncode}"
    raise Unavailable(f"git ls-files failed: {said}", code="GIT_FAILED")


def from_git(paths: list[str], rules: Rules) -> Iterator[Found]:
    """Tracked paths, those in excluded folders folded into one entry for the folder."""
    pruned: set[str] = set()
    for path in paths:
        excluded = rules.excluded_at(path)
        if excluded is None:
            yield Found(path)
        elif excluded == path:
            yield Found(path, _excluded(path))
        elif excluded not in pruned:
            pruned.add(excluded)
            yield Found(f"{excluded}/", _excluded(f"{excluded}/"))


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
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield Found(prefix, UNREADABLE)
            continue
        ignores = above
        if any(entry.name == ".gitignore" for entry in listed):
            ignores = _read_gitignore(beneath, prefix, above)
        for entry in listed:
            found, is_folder = _look(entry, prefix, ignores, rules)
            if is_folder:
                folders.append((found.path, ignores))
            else:
                yield found


def _look(
    entry: os.DirEntry[str], prefix: str, ignores: Ignores | None, rules: Rules
) -> tuple[Found, bool]:
    """What one entry is, and whether it is a folder to go into."""
    path = prefix + entry.name
    if entry.is_symlink():
        return Found(path, SYMBOLIC_LINK), False
    is_folder = entry.is_dir(follow_symlinks=False)
    shown = f"{path}/" if is_folder else path
    if rules.excluded_at(path) is not None:
        return Found(shown, _excluded(shown)), False
    if _is_ignored(shown, ignores):
        return Found(shown, IGNORED), False
    if is_folder:
        return Found(shown), True
    return Found(path, "" if _is_regular(entry) else SPECIAL), False


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return True  # gone again: opening it will say so


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
