"""The embedding servers: the OpenAI-compatible one, and LM Studio."""

import asyncio
from dataclasses import replace

import httpx

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.http.replies import MAX_BYTES, MAX_LIST, ReplyRefused
from apps.core.values.addresses import AddressRefused
from apps.embedding.replies import ServerModel, failure, read_models, unavailable
from apps.embedding.wire import wire
from apps.lmstudio.server import list_models as list_downloaded
from apps.lmstudio.types import DownloadedModel
from apps.servers.kinds import LMSTUDIO, OPENAI
from apps.servers.services import current
from apps.servers.types import Server

OPENAI_PREFIX, LMSTUDIO_PREFIX = f"{OPENAI.id}:", f"{LMSTUDIO.id}:"
LIST_SECONDS = 2.0


def configured_server() -> Server | None:
    """The embedding server of the settings, else the chat server, saved or of the settings, else
    None.

    The key of the chat server is sent to no other address, and that of the settings to no saved
    one.
    """
    address, key = config().embedding_base_url, config().embedding_api_key
    if address not in ("", config().openai_base_url):
        return Server(OPENAI.id, address, key)
    chat = current(OPENAI)
    if not chat.address:
        return None
    return replace(chat, key=key) if key and not chat.is_saved else chat


def server_of(model_id: str) -> Server | None:
    """The server of a full id; None if the id has no server or it is not configured."""
    if model_id.startswith(LMSTUDIO_PREFIX):
        return current(LMSTUDIO)
    return configured_server() if model_id.startswith(OPENAI_PREFIX) else None


def list_models(server: Server) -> list[ServerModel]:
    """All models of a server. Raises Unavailable within a few seconds."""
    return wire().submit(ask_models(server)).result()


async def ask_models(server: Server) -> list[ServerModel]:
    if server.kind == LMSTUDIO.id:
        downloaded = await downloaded_in(server)
        return [ServerModel(model.key, model.max_context, model.embeds) for model in downloaded]
    client = wire().client(server)
    try:
        async with asyncio.timeout(LIST_SECONDS):
            answer = await client.get(
                f"{server.api}/models",
                headers=server.headers,
                timeout=LIST_SECONDS,
                extensions={MAX_BYTES: MAX_LIST},
            )
    except UNREACHABLE as error:
        raise unreachable(server, error) from error
    if answer.status_code != 200:
        raise failure("", answer.status_code, answer.content, server)
    return read_models(answer.content)


async def downloaded_in(server: Server) -> tuple[DownloadedModel, ...]:
    """The models of LM Studio over its SDK, which lists their types."""
    try:
        return await list_downloaded(server, LIST_SECONDS)
    except Unavailable as error:
        raise unavailable(error.message, retryable=error.retryable) from error


# What a call of the wire's client raises, and the time limit around it. OSError: no such name.
UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, ReplyRefused, AddressRefused, OSError)


def unreachable(server: Server, error: Exception) -> Unavailable:
    where = f"The embedding server at {server.bare_url}"
    if isinstance(error, ReplyRefused | AddressRefused):
        return unavailable(f"{where} {error}")
    late = isinstance(error, httpx.TimeoutException | TimeoutError)
    kind = "did not answer in time" if late else "is away"
    return unavailable(f"{where} {kind} ({type(error).__name__})", retryable=True)
