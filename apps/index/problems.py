"""Values of `SourceFile.problem`: why a file's chunks are incomplete or out of date."""

# The parse process died twice. The next run parses the file again.
PARSING_FAILED = "Parsing failed: cut by lines"
# The next parse would take as long, so the file is parsed again only after it has changed.
PARSING_TOO_LONG = "Parsing took too long: cut by lines"
# The parses of others of its language cost the run too much. As above.
OTHERS_TOO_LONG = "Not parsed, as other files of its language took too long: cut by lines"
# The next run parses the file again, as far as it gets.
OTHERS_FAILED = "Not parsed, as parsing other files of its language failed: cut by lines"
# The definitions may lack some; the chunks are complete.
_PARTLY_READ = "The parser could not read "
_UNREAD = "Kept as it was ingested: "
# The chunks are also of an older chunker: they are made again when the file can be read.
_UNREAD_OUTDATED = "Kept as it was ingested earlier: "


def partly_read(percent: int) -> str:
    """Return the problem of a file of which the grammar could not read so many percent."""
    return f"{_PARTLY_READ}{percent} % of this file"


def of_parser(problem: str) -> str:
    """Return the problem if it tells what definitions a file may lack; "" if it is another."""
    return "" if problem.startswith((_UNREAD, _UNREAD_OUTDATED)) else problem


def is_partly_read(problem: str) -> bool:
    return problem.startswith(_PARTLY_READ)


def unread(reason: str, *, outdated: bool) -> str:
    """Return the problem of a published file that a run could not read.

    reason: why it could not be read
    outdated: whether the published chunks would be made again if it could be read
    """
    return f"{_UNREAD_OUTDATED if outdated else _UNREAD}{reason}"


def is_solved_by_reading(problem: str) -> bool:
    """Whether the problem ends when the file is readable and unchanged."""
    return problem.startswith(_UNREAD)


def needs_rechunking(problem: str) -> bool:
    """Whether a file with this problem is chunked again although it is unchanged."""
    return problem in (PARSING_FAILED, OTHERS_FAILED) or problem.startswith(_UNREAD_OUTDATED)
