"""How many connections are held at once, and how many files this process may have open for them."""

import logging
import sys

MOST = 1000
# What a large system grants; each program that is started inherits it.
MOST_FILES = 65_536

logger = logging.getLogger("codeinfo.site")


def raise_file_limit() -> None:
    """Raise the soft limit of open files (`ulimit -n`) to the hard one, where that is allowed."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit of open files stays at %s: %s", soft, error)


def most_files() -> int | None:
    """How many files this process may have open; None where nothing limits it."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - there is none on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def most_connections() -> int:
    """Half of the files that this process may have open, and at most MOST.

    The other half is for the database, the indexes, model servers and programs.
    """
    files = most_files()
    return MOST if files is None else min(MOST, files // 2)
