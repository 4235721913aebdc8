"""Whether LM Studio answers, and with which models. Says in a sentence what is missing.

The SDK is imported when a server has greeted us and not before: most users have another one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from types import ModuleType

import httpx

from apps.core import replies
from apps.core.addresses import Address, bracketed
from apps.core.heap import settled
from apps.core.replies import ReplyRefused
from apps.lmstudio.errors import unavailable
from apps.lmstudio.types import Downloaded, PredictionEvent, PredictionRequest, read_models

GREETING_SECONDS = 1.0
MAX_GREETING = 10_000
CHANGE_IT = "change the address on the LM Studio page"


async def reach(address: Address) -> str:
    """`host:port` of an LM Studio that has just greeted us, to be connected to as it is.

    Its name is resolved once and replaced by where it leads, so that it cannot lead elsewhere a
    moment later. No redirect is followed. Raises Unavailable.
    """
    if address.scheme == "https":
        raise unavailable(
            f"LM Studio's SDK speaks no TLS, so {address} cannot be used: {CHANGE_IT} to one that "
            "begins with http://",
            retryable=False,
        )
    host = f"{bracketed(str(await resolved(address)))}:{address.port}"
    try:
        # Without TLS there are no certificates to read, which takes longer than the greeting.
        async with (
            asyncio.timeout(GREETING_SECONDS),
            replies.client(timeout=None, verify=False, trust_env=False) as client,
        ):
            greeting = f"http://{host}/lmstudio-greeting"
            answer = await client.get(greeting, extensions={replies.MAX_BYTES: MAX_GREETING})
            greeted = answer.is_success and answer.json() == {"lmstudio": True}
    except (TimeoutError, httpx.TimeoutException):
        raise unavailable(f"{address} does not answer in time: is it LM Studio?") from None
    except httpx.HTTPError:
        raise unavailable(
            f"Nothing answers at {address}: start LM Studio's server, or {CHANGE_IT}."
        ) from None
    except (ReplyRefused, ValueError, RecursionError):
        greeted = False
    if not greeted:
        raise unavailable(f"Something else than LM Studio answers at {address}: {CHANGE_IT}.")
    return host


async def resolved(address: Address) -> str:
    """The IP address that a connection may go to. Raises Unavailable."""
    try:
        return str(await address.resolve())
    except ValueError as error:
        message = f"The address {address} {error}: {CHANGE_IT}."
        raise unavailable(message, retryable=False) from None
    except OSError:
        message = f"There is no server of the name {address.host}: {CHANGE_IT}."
        raise unavailable(message) from None


async def list_models(address: Address, seconds: float, token: str) -> tuple[Downloaded, ...]:
    """All downloaded models, in LM Studio's order. Raises Unavailable.

    token: CODEINFO_LMSTUDIO_API_TOKEN for the address in use; "" for any other, which must not
        learn it.
    """
    try:
        async with asyncio.timeout(seconds):
            host = await reach(address)
            sdk = await asyncio.to_thread(_import_sdk)
            return read_models(await sdk.downloaded_models(address, host, token))
    except TimeoutError:
        raise unavailable("Request timed out") from None


async def predict(
    address: Address, model: str, compose: Callable[[int | None], PredictionRequest]
) -> AsyncGenerator[PredictionEvent, None]:
    """One round of a model; see `sdk.predict`. Raises Unavailable."""
    host = await reach(address)
    sdk = await asyncio.to_thread(_import_sdk)
    async with aclosing(sdk.predict(address, host, model, compose)) as heard:
        async for one in heard:
            yield one


@cache
def _import_sdk() -> ModuleType:
    # Takes most of a second the first time; in a thread, so that nobody waits meanwhile.
    from apps.lmstudio import sdk  # noqa: PLC0415

    settled()
    return sdk
