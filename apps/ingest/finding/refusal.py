"""A git repository whose list of files is not taken, and why."""

from codeinfo.errors import Unavailable

CODE = "GIT_FAILED"


def refused(reason: str) -> Unavailable:
    """The error that ends a run. `reason` is a clause whose subject is the repository."""
    return Unavailable(f"The git repository {reason}.", code=CODE, retryable=False)
