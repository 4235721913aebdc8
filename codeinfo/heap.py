"""What is in memory to stay."""

import gc


def settled() -> None:
    """Called once when much was imported: the garbage collector need not look through it again.

    It stops the whole process while it looks, a tenth of a second for each of the large SDKs. What
    is garbage at the moment of the call stays, too: not for every request.
    """
    gc.freeze()
