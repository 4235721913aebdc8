"""The error of a git repository that cannot be read or is not trusted."""

from apps.core.errors import Unavailable
from apps.core.values.surrogates import encodable

CODE = "GIT_FAILED"


def refused(reason: str) -> Unavailable:
    """Return the error that ends a run.

    reason: the rest of a sentence that starts with "The git repository"; bytes of paths that are
    not UTF-8 are replaced
    """
    return Unavailable(f"The git repository {encodable(reason)}.", code=CODE, retryable=False)
