"""Keeps the server alive while the bridge is, and starts it if it has ended."""

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path

from apps.core.concurrency.tasks import in_new_thread
from codeinfo_cli import server
from codeinfo_cli.server import Address, ServerUnavailable

# A server that a bridge has started ends this long after its last user.
IDLE_SECONDS = 5

Hold = tuple[AbstractContextManager[Address], Address]


class Link:
    """Attaches to the server of a data folder, in threads, as that can take seconds."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._attaching: asyncio.Task[Hold] | None = None
        self._held: list[AbstractContextManager[Address]] = []
        self._was_up = False

    @property
    def is_up(self) -> bool:
        """True if a server is running."""
        return server.running(self._data) is not None

    @property
    def is_starting(self) -> bool:
        return self._attaching is not None and not self._attaching.done()

    @property
    def is_lost(self) -> bool:
        """True if the server has ended, and another one may be starting."""
        return self._was_up and (self.is_starting or not self.is_up)

    def start(self) -> None:
        """Begin to attach. The bridge can end while a server starts. That one ends unused."""
        self._attaching = asyncio.create_task(in_new_thread(self._attach, "attach"))
        # If no message waits for it, a failure is not reported: the next message tries again.
        self._attaching.add_done_callback(_retrieve)

    def _attach(self) -> Hold:
        context = server.attached(self._data, idle_seconds=IDLE_SECONDS, any_port=True)
        try:
            address = context.__enter__()
        except OSError as error:
            raise ServerUnavailable(str(error)) from error
        self._held.append(context)
        self._was_up = True
        return context, address

    async def address(self) -> Address:
        """Return the live server; start it if it has ended. Raises ServerUnavailable."""
        attaching = self._attaching
        if attaching is None or (attaching.done() and not self._is_live(attaching)):
            self.start()
            attaching = self._attaching
        assert attaching is not None
        _, address = await asyncio.shield(attaching)
        return address

    def _is_live(self, attaching: "asyncio.Task[Hold]") -> bool:
        if attaching.exception() is not None:
            return False
        context, address = attaching.result()
        if server.running(self._data) == address:
            return True
        self._held.remove(context)
        context.__exit__(None, None, None)
        return False


def _retrieve(attaching: "asyncio.Task[Hold]") -> None:
    if not attaching.cancelled():
        attaching.exception()
