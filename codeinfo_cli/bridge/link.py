"""Keeps the server alive while the bridge is, and starts it if it has ended."""

import asyncio
import threading
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from codeinfo_cli import server
from codeinfo_cli.server import Address, ServerUnavailable

# A server that a bridge has started ends this long after its last user.
IDLE_SECONDS = 5

Hold = tuple[AbstractContextManager[Address], Address]


class Link:
    """Attaches to the server of a data folder, in threads, as that can take seconds."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._attaching: asyncio.Future[Hold] | None = None
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
        """Begin to attach."""
        loop = asyncio.get_running_loop()
        attaching: asyncio.Future[Hold] = loop.create_future()
        # If no message waits for it, a failure is not reported: the next message tries again.
        attaching.add_done_callback(_retrieve)
        self._attaching = attaching

        def attach() -> None:
            context = server.attached(self._data, idle_seconds=IDLE_SECONDS, any_port=True)
            try:
                hold = context, context.__enter__()
            except (ServerUnavailable, OSError) as error:
                failure = ServerUnavailable(str(error))
                with suppress(RuntimeError):  # the bridge has ended
                    loop.call_soon_threadsafe(attaching.set_exception, failure)
                return
            self._held.append(context)
            self._was_up = True
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(attaching.set_result, hold)

        # A daemon, so that the bridge can end while a server starts. That one ends unused.
        threading.Thread(target=attach, daemon=True).start()

    async def address(self) -> Address:
        """Return the live server; start it if it has ended. Raises ServerUnavailable."""
        attaching = self._attaching
        if attaching is None or (attaching.done() and not self._is_live(attaching)):
            self.start()
            attaching = self._attaching
        assert attaching is not None
        _, address = await asyncio.shield(attaching)
        return address

    def _is_live(self, attaching: "asyncio.Future[Hold]") -> bool:
        if attaching.exception() is not None:
            return False
        context, address = attaching.result()
        if server.running(self._data) == address:
            return True
        self._held.remove(context)
        context.__exit__(None, None, None)
        return False


def _retrieve(attaching: "asyncio.Future[Hold]") -> None:
    if not attaching.cancelled():
        attaching.exception()
