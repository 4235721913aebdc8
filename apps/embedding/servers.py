"""The embedding servers: the OpenAI-compatible one of the settings, and LM Studio."""

import asyncio
from dataclasses import dataclass

import httpx

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.http.replies import MAX_BYTES, MAX_LIST, ReplyRefused
from apps.core.values.addresses import Address, bracketed
from apps.embedding.replies import (
    LMSTUDIO,
    OPENAI,
    ServerModel,
    Setting,
    failure,
    read_models,
    unavailable,
)
from apps.embedding.wire import wire
from apps.lmstudio import services
from apps.lmstudio.server import list_models as list_downloaded
from apps.lmstudio.server import resolved
from apps.lmstudio.services import LMStudio
from apps.lmstudio.types import DownloadedModel

OPENAI_PREFIX = "openai:"
LMSTUDIO_PREFIX = "lmstudio:"
LIST_SECONDS = 2.0


@dataclass(frozen=True)
class Server:
    """An embedding server."""

    base_url: str  # with /v1
    api_key: str  # "": none
    prefix: str = OPENAI_PREFIX  # of the full ids of its models
    setting: Setting = OPENAI  # named in error messages
    address: Address | None = None  # of LM Studio; None for other servers

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def configured_server() -> Server | None:
    """The embedding server of the settings, else the chat server, else None.

    The key of the chat server is sent to no other address.
    """
    settings = config()
    if settings.embedding_base_url not in ("", settings.openai_base_url):
        return Server(settings.embedding_base_url, settings.embedding_api_key)
    if settings.openai_base_url:
        key = settings.embedding_api_key or settings.openai_api_key
        return Server(settings.openai_base_url, key)
    return None


def lmstudio_server() -> Server:
    """LM Studio over REST, which accepts batches. Its host name is resolved and checked now.

    Raises Unavailable for a name that does not exist or an address that is not allowed.
    """
    used = services.server()
    address = used.address
    host = address.host
    try:
        ip = wire().submit(resolved(address)).result()
    except Unavailable as error:
        raise unavailable(error.message, retryable=error.retryable) from error
    if address.scheme == "http":
        # Over TLS the name stays, since the certificate is for the name.
        host = ip
    return Server(
        f"{address.scheme}://{bracketed(host)}:{address.port}/v1",
        used.token,
        LMSTUDIO_PREFIX,
        LMSTUDIO,
        address,
    )


def server_of(model_id: str) -> Server | None:
    """The server of a full id; None if the id has no server or it is not configured."""
    if model_id.startswith(LMSTUDIO_PREFIX):
        return lmstudio_server()
    return configured_server() if model_id.startswith(OPENAI_PREFIX) else None


def list_models(server: Server) -> list[ServerModel]:
    """All models of a server. Raises Unavailable within a few seconds."""
    return wire().submit(ask_models(server)).result()


async def ask_models(server: Server) -> list[ServerModel]:
    if server.address is not None:
        found = await downloaded_in(LMStudio(server.address, server.api_key))
        return [ServerModel(model.key, model.max_context, model.embeds) for model in found]
    try:
        async with asyncio.timeout(LIST_SECONDS):
            answer = await wire().client.get(
                f"{server.base_url}/models",
                headers=server.headers,
                timeout=LIST_SECONDS,
                extensions={MAX_BYTES: MAX_LIST},
            )
    except UNREACHABLE as error:
        raise unreachable(server, error) from error
    if answer.status_code != 200:
        raise failure("", answer.status_code, answer.content)
    return read_models(answer.content)


async def downloaded_in(server: LMStudio) -> tuple[DownloadedModel, ...]:
    """The models of LM Studio over its SDK, which lists their types."""
    try:
        return await list_downloaded(server.address, LIST_SECONDS, server.token)
    except Unavailable as error:
        raise unavailable(error.message, retryable=error.retryable) from error


# What a call of the wire's client raises, and the time limit around it.
UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, ReplyRefused, TimeoutError)


def unreachable(server: Server, error: Exception) -> Unavailable:
    if isinstance(error, ReplyRefused):
        return unavailable(f"The embedding server at {server.base_url} {error}")
    late = isinstance(error, httpx.TimeoutException | TimeoutError)
    kind = "did not answer in time" if late else "is away"
    return unavailable(
        f"The embedding server at {server.base_url} {kind} ({type(error).__name__})", retryable=True
    )
