"""Sends the change notices of a Celery worker to the server processes (`relay`)."""

import asyncio
import threading
from typing import Any

from celery.signals import worker_init
from channels.layers import get_channel_layer

from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.site.relay import Relay


@worker_init.connect
def begin(**signal: Any) -> None:
    """Start the relay in a thread, as a worker has no event loop."""
    if config().redis_url:
        threading.Thread(target=asyncio.run, args=(_relay(),), name="relay", daemon=True).start()


async def _relay() -> None:
    async with Relay(hub, get_channel_layer()).running():
        await asyncio.Event().wait()
