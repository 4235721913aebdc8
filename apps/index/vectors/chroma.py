"""Opens Chroma, and translates its errors. Only this module imports chromadb.

The import takes about a second, so it happens at the first use.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import httpx

from apps.core.errors import Unavailable

CALL_SECONDS = 60.0
_LOADING = threading.Lock()
_TIMEOUT = httpx.Timeout(CALL_SECONDS, connect=5.0)


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    """Return the error of a call that failed."""
    return Unavailable(message, code="CHROMA_UNAVAILABLE", retryable=retryable)


class Failed(Unavailable):
    """Chroma was reached, and failed: what it has may be broken."""

    code = "CHROMA_UNAVAILABLE"


def _load() -> None:
    """Import chromadb. Else its import takes settings from `.env` in the current folder. Raises
    Unavailable if it is not installed."""
    with _LOADING:
        if "chromadb" in sys.modules:
            return
        if (found := find_spec("chromadb")) is None:
            text = "Chroma is not installed: pip install codeinfo[chroma]"
            raise unavailable(text, retryable=False)
        package = ModuleType("chromadb")
        package.__path__ = list(found.submodule_search_locations or ())
        sys.modules["chromadb"] = package
        try:
            config = import_module("chromadb.config")
        finally:
            del sys.modules["chromadb"]
        config.Settings.model_config["env_file"] = None
        import_module("chromadb").config = config  # type: ignore[attr-defined]


@contextmanager
def chroma_errors() -> Iterator[None]:
    """Translate errors of Chroma to Failed, and those of the way to its server to Unavailable."""
    _load()
    try:
        yield
    except httpx.HTTPError as error:
        raise unavailable(f"Chroma does not answer: {error}") from error
    except Unavailable:
        raise
    except Exception as error:
        # Chroma raises errors of any type: `Exception` itself if a proxy answers for its server.
        raise Failed(f"Chroma failed: {error}") from error


def is_missing(error: Unavailable) -> bool:
    """Whether the cause of `error` is that the collection does not exist."""
    _load()
    from chromadb.errors import NotFoundError  # noqa: PLC0415 - heavy, see above

    return isinstance(error.__cause__, NotFoundError)


def open_embedded(folder: Path) -> Any:
    """Return a client of the store in `folder`, which no other process has open. Raises
    Unavailable."""
    _load()
    import chromadb  # noqa: PLC0415 - heavy, see above

    with chroma_errors():
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        return chromadb.PersistentClient(path=str(folder), settings=settings)


def open_server(url: str) -> Any:
    """Return a client of the server at `url`. Raises Unavailable if it does not answer."""
    _load()
    import chromadb  # noqa: PLC0415 - heavy, see above

    parts = urlsplit(url)
    with chroma_errors():
        client = chromadb.HttpClient(
            host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https"
        )
        # By default Chroma never times out and never closes connections; there is no setting.
        session = client._server._session
        session.timeout = _TIMEOUT
        system, release = client._system, client.close

        def close() -> None:
            session.close()
            release()
            # Chroma keeps it under a third name, too.
            systems = client._identifier_to_system
            for name in [name for name, one in systems.items() if one is system]:
                del systems[name]

        client.close = close
        # The admin client has a connection of its own, which is no longer needed.
        client._admin_client._server._session.close()
        return client
