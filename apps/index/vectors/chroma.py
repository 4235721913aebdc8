"""Opens Chroma, and translates its errors. Only this module imports chromadb.

The import takes about a second, so it happens at the first use. It reads settings from `.env` in
the current folder, which is `/` in the process that imports it (`process`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from apps.core.errors import Unavailable

CALL_SECONDS = 60.0
_TIMEOUT = httpx.Timeout(CALL_SECONDS, connect=5.0)


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    """Return the error of a call that failed."""
    return Unavailable(message, code="CHROMA_UNAVAILABLE", retryable=retryable)


class Failed(Unavailable):
    """Chroma was reached, and failed: what it has may be broken."""

    code = "CHROMA_UNAVAILABLE"


@contextmanager
def chroma_errors() -> Iterator[None]:
    """Translate errors of Chroma to Failed, and those of the way to its server to Unavailable."""
    try:
        yield
    except ModuleNotFoundError as error:
        text = "Chroma is not installed: pip install codeinfo[chroma]"
        raise unavailable(text, retryable=False) from error
    except httpx.HTTPError as error:
        raise unavailable(f"Chroma does not answer: {error}") from error
    except Unavailable:
        raise
    except Exception as error:
        # Chroma raises errors of any type: `Exception` itself if a proxy answers for its server.
        raise Failed(f"Chroma failed: {error}") from error


def not_found() -> type[Exception]:
    """Return what Chroma raises for a collection that does not exist."""
    from chromadb.errors import NotFoundError  # noqa: PLC0415 - heavy, see above

    error: type[Exception] = NotFoundError
    return error


def open_embedded(folder: Path) -> Any:
    """Return a client of the store in `folder`, which no other process has open."""
    import chromadb  # noqa: PLC0415 - heavy, see above

    return chromadb.PersistentClient(path=str(folder), settings=_silent())


def open_server(url: str) -> Any:
    """Return a client of the server at `url`."""
    parts = urlsplit(url)
    import chromadb  # noqa: PLC0415 - heavy, see above

    client = chromadb.HttpClient(
        host=parts.hostname or "",
        port=parts.port or 8000,
        ssl=parts.scheme == "https",
        settings=_silent(),
    )
    # By default Chroma never times out; there is no setting.
    client._server._session.timeout = _TIMEOUT
    return client


def _silent() -> Any:
    from chromadb.config import Settings  # noqa: PLC0415 - heavy, see above

    return Settings(anonymized_telemetry=False)
