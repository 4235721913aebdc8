"""Files that used to change together with others, by the commits that changed both."""

from collections import Counter
from collections.abc import Sequence

from apps.code.notebooks import is_notebook_path
from apps.lookup.history.subject import Subject

MOST_COMMITS = 1_000
# Files of a commit. One that changes more says nothing about two of them.
MOST_OF_A_COMMIT = 30
# Commits that changed both, and their share of the commits that changed the file.
MIN_COMMITS, MIN_SHARE = 3, 0.3
MOST_PATHS, MOST_FILES = 50, 20
MARK, MARKED = "%x01", "\1"


def changed_together(subject: Subject, paths: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Files that changed in the same commits as one of some paths: path → number of the commits,
    and that one path. The most frequent first. Raises as `Git.run`."""
    own = list(paths)[:MOST_PATHS]
    if not own:
        return {}
    inside = [subject.in_repository(path) for path in own]
    arguments = (f"--max-count={MOST_COMMITS}", f"--format={MARK}", "--no-merges", "--full-diff")
    names = ("--no-renames", "--name-only", "-z")
    output = subject.git.run("log", *arguments, *names, subject.git.head, "--", *inside)
    alone, pairs = _counted(output.decode("utf-8", "surrogateescape"), set(inside))
    best: dict[str, tuple[int, str]] = {}
    for (path, other), count in pairs.most_common():
        if count >= MIN_COMMITS and count >= MIN_SHARE * alone[path] and other not in best:
            best[other] = (count, path)
    found = {subject.in_root(other): (count, path) for other, (count, path) in best.items()}
    reasons = subject.visible.reasons(found)
    shown = [path for path in found if not reasons[path] and not is_notebook_path(path)]
    return {path: (found[path][0], subject.in_root(found[path][1])) for path in shown[:MOST_FILES]}


def _counted(output: str, wanted: set[str]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """The commits that changed each path, and those that changed it and another file."""
    alone: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for commit in output.split(MARKED):
        files = {name.strip("\n") for name in commit.split("\0")} - {""}
        if not 0 < len(files) <= MOST_OF_A_COMMIT:
            continue
        for path in files & wanted:
            alone[path] += 1
            pairs.update((path, other) for other in files - wanted)
    return alone, pairs
