"""A git repository whose list of files is not taken, and why."""

from apps.core.errors import Unavailable
from apps.core.surrogates import encodable

CODE = "GIT_FAILED"


def refused(reason: str) -> Unavailable:
    """The error that ends a run. `reason` is a clause whose subject is the repository; paths in it
    need not be UTF-8, but a row must."""
    return Unavailable(f"The git repository {encodable(reason)}.", code=CODE, retryable=False)
