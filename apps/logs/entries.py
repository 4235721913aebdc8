"""One entry for a piece of work, with its duration."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apps.core.errors import CodeinfoError


@contextmanager
def timed_entry(logger: logging.Logger, event: str, **facts: Any) -> Iterator[dict[str, Any]]:
    """Log one entry when the block ends: `facts`, what the block adds to them, the code of its
    error, and its milliseconds."""
    started = time.perf_counter()
    try:
        yield facts
    except CodeinfoError as error:
        facts["code"] = error.code
        raise
    finally:
        facts["ms"] = round((time.perf_counter() - started) * 1000, 1)
        logger.info(event, extra={"context": facts})
