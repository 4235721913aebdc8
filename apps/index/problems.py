"""Why the chunks of a published file are not what it would give today (`SourceFile.problem`)."""

# The parse killed its process twice, or was killed twice by somebody. The next run tries it again.
PARSING_FAILED = "Parsing failed: cut by lines"
# The same file takes as long the next time, so no run tries it again before it changes.
PARSING_TOO_LONG = "Parsing took too long: cut by lines"
_KEPT = "Kept as it was ingested: "
# As above, by a run that would have cut it otherwise: it is made anew when it can be read.
_KEPT_OUTDATED = "Kept as it was ingested earlier: "


def kept(reason: str, *, outdated: bool) -> str:
    """What is said of a published file that cannot be read for `reason`."""
    return f"{_KEPT_OUTDATED if outdated else _KEPT}{reason}"


def ends_with_reading(problem: str) -> bool:
    """Whether nothing is wrong any more when the file can be read and has not changed."""
    return problem.startswith(_KEPT)


def is_tried_again(problem: str) -> bool:
    """Whether a file with this problem is cut again although it has not changed."""
    return problem == PARSING_FAILED or problem.startswith(_KEPT_OUTDATED)
