"""What a worker of Celery changes is told to the pages of the serving processes (see `relay`)."""

import asyncio
import threading
from typing import Any

from celery.signals import worker_init
from channels.layers import get_channel_layer

from apps.core.config import config
from apps.core.hub import hub
from apps.site.relay import Relay


@worker_init.connect
def begin(**signal: Any) -> None:
    """A worker has no event loop of its own: this one ends with the process."""
    if config().redis_url:
        threading.Thread(target=asyncio.run, args=(_relay(),), name="relay", daemon=True).start()


async def _relay() -> None:
    async with Relay(hub, get_channel_layer()).running():
        await asyncio.Event().wait()
