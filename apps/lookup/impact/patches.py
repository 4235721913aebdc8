"""Applies a patch to the ingested texts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import re2
from dulwich.patch import FilePatch, PatchHunk, apply_patch_hunks, parse_unified_diff

from apps.index.models import Root
from apps.index.types import Area
from apps.lookup.impact.types import MAX_FILES, ChangeSet, FileSides
from apps.lookup.ingested import lines_of_file, live_file
from apps.lookup.symbols.project import root_files
from apps.retrieval.query import invalid, is_inside

NO_CHANGE = "patch must be a unified diff, as `git diff` writes it"
OUTSIDE = "patch must name files inside of the repository: {}"
TOO_MANY = f"patch must change at most {MAX_FILES} files"
BROKEN = "patch is malformed: a hunk of {} has not the lines that its head tells"
UNKNOWN = "Files of the patch that are not ingested, or may not be looked into: {}."
UNFIT = "Files to whose ingested text the patch does not apply: {}."
BINARY = "Binary files of the patch are left out: {}."
MAX_NAMED = 5
SIGNATURE = b"-- "
_PREFIX = re.compile(r"[abciow]/")
# A patch that `diff -u` writes has no line "diff --git" for a file.
_FILE_HEAD = re2.compile(rb"(?m)^(--- [^\n]+\n\+\+\+ [^\n]+\n@@ )")


def changes_of_patch(root: Root, patch: str, areas: Sequence[Area]) -> ChangeSet:
    """The files of a patch, before and after. If it is applied already, the ingested text is the
    one after it.

    Raises InvalidInput if it is no patch, or leads outside, and Unavailable TEXT_LOST.
    """
    changes = ChangeSet()
    left_out: dict[str, list[str]] = {UNKNOWN: [], UNFIT: [], BINARY: []}
    for file in _parsed(patch):
        old, new = _paths(file)
        if file.binary:
            left_out[BINARY].append(new or old)
        elif not all(is_inside(areas, root, path) for path in (old, new) if path):
            left_out[UNKNOWN].append(new or old)
        else:
            before, after = _lines(root, old), _lines(root, new)
            if (sides := _sides(file, (old, new), before, after)) is not None:
                changes.files += _files(file, (old, new), *sides)
            else:
                is_known = before is not None or after is not None
                left_out[UNFIT if is_known else UNKNOWN].append(new or old)
    for note, paths in left_out.items():
        if paths:
            more = ", …" if len(paths) > MAX_NAMED else ""
            changes.notes.append(note.format(", ".join(paths[:MAX_NAMED]) + more))
    return changes


def _parsed(patch: str) -> list[FilePatch]:
    data = patch.encode("utf-8", "replace").replace(b"\r\n", b"\n")
    if not re.search(rb"^diff --git ", data, re.MULTILINE):
        data = _FILE_HEAD.sub(rb"diff --git a b\n\1", data)
    try:
        files = parse_unified_diff(data)
    except (ValueError, IndexError):
        files = []
    if not files:
        raise invalid(NO_CHANGE)
    if len(files) > MAX_FILES:
        raise invalid(TOO_MANY)
    return [replace(file, hunks=[*_checked(file)]) for file in files]


def _checked(file: FilePatch) -> Iterator[PatchHunk]:
    """The hunks with the lines that their heads tell. Raises InvalidInput."""
    for hunk in file.hunks:
        old, new, count = hunk.old_count, hunk.new_count, 0
        for line in hunk.lines:
            if not (old or new or line.startswith(b"\\")):
                break
            old -= line[:1] in (b" ", b"-")
            new -= line[:1] in (b" ", b"+")
            count += 1
        # `git format-patch` writes "-- " and its version behind the last hunk.
        if old or new or hunk.lines[count:] not in ([], [SIGNATURE]):
            raise invalid(BROKEN.format(next(filter(None, _paths(file)[::-1]))))
        yield replace(hunk, lines=[line for line in hunk.lines[:count] if line[:1] != b"\\"])


def _paths(file: FilePatch) -> tuple[str, str]:
    """The path before and after; "" for none. Raises InvalidInput if one leads outside."""
    old, new = ((path or b"").decode("utf-8", "replace") for path in (file.old_path, file.new_path))
    prefixes = [*filter(None, (_PREFIX.match(path) for path in (old, new) if path))]
    if prefixes and len(prefixes) == bool(old) + bool(new):
        old, new = old[2:], new[2:]
    source, target = file.rename_from or file.copy_from, file.rename_to or file.copy_to
    if source and target:
        old, new = (one.decode("utf-8", "replace") for one in (source, target))
    for path in (old, new):
        if path and not {"", ".", ".."}.isdisjoint(path.removeprefix("./").split("/")):
            raise invalid(OUTSIDE.format(path[:200]))
    if not old and not new:
        raise invalid(NO_CHANGE)
    return old.removeprefix("./"), new.removeprefix("./")


def _files(
    file: FilePatch, paths: tuple[str, str], before: list[str] | None, after: list[str] | None
) -> Iterator[FileSides]:
    """A file that was moved is one that is gone, and a new one, as in a work tree: what imports it
    finds nothing any more. Of one that was copied, both are there."""
    old, new = paths
    if old == new or not old or not new:
        yield FileSides(new or old, old or new, before, after)
        return
    if not file.copy_to:
        yield FileSides(old, old, before, None)
    yield FileSides(new, new, None, after)


def _sides(
    file: FilePatch,
    paths: tuple[str, str],
    before: list[str] | None,
    after: list[str] | None,
) -> tuple[list[str] | None, list[str] | None] | None:
    """Both texts; None if the patch fits neither as it is nor turned around.

    paths: before and after; "" for none
    before, after: the ingested texts at both
    """
    is_new, is_gone = not paths[0], not paths[1]
    if before is not None or (is_new and after is None):
        applied = _applied(file, before)
        if applied is not None:
            return None if is_new else before, None if is_gone else applied
    if after is not None or (is_gone and before is None):
        applied = _applied(_turned(file), after)
        if applied is not None:
            return None if is_new else applied, None if is_gone else after
    return None


def _lines(root: Root, path: str) -> list[str] | None:
    """The ingested lines of a file; None if it is not live. Raises Unavailable TEXT_LOST."""
    if path not in root_files(root).files:
        return None
    return lines_of_file(root, live_file(root, path))


def _applied(file: FilePatch, lines: Sequence[str] | None) -> list[str] | None:
    """The lines after the patch; None if it does not fit. Ends of lines are not compared."""
    plain = [line.encode("utf-8", "replace") + b"\n" for line in lines or ()]
    applied = apply_patch_hunks(file, plain)
    if applied is None:
        return None
    return [line[:-1].decode("utf-8", "replace") for line in applied]


def _turned(file: FilePatch) -> FilePatch:
    """The patch that undoes it."""
    sides = {b"+": b"-", b"-": b"+"}
    hunks = [
        PatchHunk(
            hunk.new_start,
            hunk.new_count,
            hunk.old_start,
            hunk.old_count,
            [sides.get(line[:1], line[:1]) + line[1:] for line in hunk.lines],
        )
        for hunk in file.hunks
    ]
    return replace(file, hunks=hunks)
