"""How many connections are held at once."""

import sys

MOST = 1000


def most_connections() -> int:
    """Half of the files that this process may have open, and at most MOST.

    The other half is for the database, the indexes, model servers and programs.
    """
    if sys.platform == "win32":
        return MOST
    import resource  # noqa: PLC0415 - there is none on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(MOST, soft // 2)
