"""Check that LM Studio answers, list its models and start predictions.

Errors are sentences for the user. The SDK is imported only after a server has answered the
greeting, because most users have a different server.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from types import ModuleType

import httpx

from apps.core.http import replies
from apps.core.http.replies import ReplyRefused
from apps.core.system.heap import settled
from apps.core.values.addresses import Address, bracketed
from apps.lmstudio.errors import unavailable
from apps.lmstudio.types import DownloadedModel, PredictionEvent, PredictionRequest, read_models
from apps.logs.entries import timed_entry
from apps.servers.types import Server

log = logging.getLogger("codeinfo.lmstudio")

GREETING_SECONDS = 1.0
MAX_GREETING = 10_000
STATUS_SECONDS = 60.0
CHANGE_IT = "change the address on the LM Studio page"


async def greet(address: Address) -> str:
    """Check that LM Studio answers at `address`; return its IP address and port, `host:port`.

    The name is resolved once and the connection uses the result, which prevents DNS rebinding.
    Redirects are not followed. Raises Unavailable.
    """
    if address.scheme == "https":
        raise unavailable(
            f"LM Studio's SDK speaks no TLS, so {address} cannot be used: {CHANGE_IT} to one that "
            "begins with http://",
            retryable=False,
        )
    host = f"{bracketed(str(await resolved(address)))}:{address.port}"
    try:
        # verify=False skips reading certificates, which takes longer than the greeting.
        async with (
            asyncio.timeout(GREETING_SECONDS),
            replies.client(timeout=None, verify=False, trust_env=False) as client,
        ):
            greeting = f"http://{host}/lmstudio-greeting"
            response = await client.get(greeting, extensions={replies.MAX_BYTES: MAX_GREETING})
            is_lmstudio = response.is_success and response.json() == {"lmstudio": True}
    except (TimeoutError, httpx.TimeoutException):
        raise unavailable(f"{address} does not answer in time: is it LM Studio?") from None
    except httpx.HTTPError:
        raise unavailable(
            f"Nothing answers at {address}: start LM Studio's server, or {CHANGE_IT}."
        ) from None
    except (ReplyRefused, ValueError, RecursionError):
        is_lmstudio = False
    if not is_lmstudio:
        raise unavailable(f"Something else than LM Studio answers at {address}: {CHANGE_IT}.")
    return host


async def resolved(address: Address) -> str:
    """Resolve an address to an allowed IP address. Raises Unavailable."""
    try:
        return str(await address.resolve())
    except ValueError as error:
        message = f"The address {address} {error}: {CHANGE_IT}."
        raise unavailable(message, retryable=False) from None
    except OSError:
        message = f"There is no server of the name {address.host}: {CHANGE_IT}."
        raise unavailable(message) from None


async def list_models(server: Server, seconds: float) -> tuple[DownloadedModel, ...]:
    """Return all downloaded models, in LM Studio's order. Raises Unavailable.

    seconds: the timeout of the whole call.
    """
    address = Address.parse(server.address)
    try:
        async with asyncio.timeout(seconds):
            host = await greet(address)
            sdk = await asyncio.to_thread(_import_sdk)
            return read_models(await sdk.downloaded_models(address, host, server.key))
    except TimeoutError:
        raise unavailable("Request timed out") from None


async def list_for_status(server: Server) -> tuple[DownloadedModel, ...]:
    """List the models for a page or a client, and log it. Raises Unavailable."""
    with timed_entry(log, "LM Studio models", baseUrl=server.address) as facts:
        models = await list_models(server, STATUS_SECONDS)
        facts["count"] = len(models)
    return models


async def predict(
    server: Server, model: str, build_request: Callable[[int | None], PredictionRequest]
) -> AsyncGenerator[PredictionEvent, None]:
    """Stream one prediction; see `sdk.predict`. Raises Unavailable."""
    address = Address.parse(server.address)
    host = await greet(address)
    sdk = await asyncio.to_thread(_import_sdk)
    async with aclosing(sdk.predict(address, host, server.key, model, build_request)) as events:
        async for event in events:
            yield event


@cache
def _import_sdk() -> ModuleType:
    # The first import takes most of a second, so callers import in a thread.
    from apps.lmstudio import sdk  # noqa: PLC0415

    settled()
    return sdk
