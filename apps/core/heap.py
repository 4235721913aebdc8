"""What is in memory to stay, and what the system gets back."""

import ctypes
import gc
import logging
import threading
import time
from functools import cache
from typing import Any

logger = logging.getLogger("codeinfo.heap")

# What is freed within this time is given back together.
GATHER_SECONDS = 10.0


def settled() -> None:
    """Called once when much was imported: the garbage collector need not look through it again.

    It stops the whole process while it looks, a tenth of a second for each of the large SDKs. What
    is garbage at the moment of the call stays, too: not for every request.
    """
    gc.freeze()


class Trim:
    """Gives freed memory back to the operating system, a while after it is asked to.

    A request that was cut off is in a circle of references, and so kept, with all that it still had
    to send, until the garbage collector comes by. And glibc keeps what was freed among what is in
    use. Other C libraries have no such call; there nothing happens.
    """

    def __init__(self, seconds: float = GATHER_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def soon(self) -> None:
        """Called when much was freed; from any thread, as often as one likes."""
        with self._lock:
            if self._timer is not None or _malloc_trim() is None:
                return
            self._timer = threading.Timer(self._seconds, self.now)
            self._timer.daemon = True
            self._timer.start()

    @property
    def waits(self) -> bool:
        """Whether it was asked for and not done yet."""
        return self._timer is not None

    def stop(self) -> None:
        """Forget what was asked for."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

    def now(self) -> None:
        """Do it, in this thread."""
        with self._lock:
            self._timer = None
        trim = _malloc_trim()
        if trim is not None:
            begun = time.perf_counter()
            gc.collect()
            trim(0)
            facts = {"ms": round((time.perf_counter() - begun) * 1000, 1)}
            logger.debug("memory given back", extra={"context": facts})


@cache
def _malloc_trim() -> Any:
    """The function of glibc; None where there is none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


trim = Trim()
