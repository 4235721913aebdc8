"""An object of which a process has one, such as a store, created by its first use."""

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> None: ...


Object = TypeVar("Object", bound=Closable)


class PerProcess(Generic[Object]):
    """Thread-safe."""

    def __init__(self, create: Callable[[], Object]) -> None:
        self._create = create
        self._lock = threading.Lock()
        self.created: Object | None = None

    def get(self) -> Object:
        """Return the object. Raises as `create`."""
        with self._lock:
            if self.created is None:
                self.created = self._create()
            return self.created

    def reset(self) -> None:
        """Close the object, if it was created. The next `get` creates another one."""
        with self._lock:
            if self.created is not None:
                self.created.close()
            self.created = None
