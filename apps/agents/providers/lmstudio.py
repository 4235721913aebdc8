"""The LM Studio provider.

`apps.lmstudio` stores the address and talks to the server through its SDK. This module translates
its models and events to those of the Provider protocol.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from channels.db import database_sync_to_async

from apps.agents.events import ModelEvent
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.providers.listing import ModelListCache, availability_of
from apps.agents.providers.lmstudio_frames import PredictionDecoder
from apps.agents.providers.lmstudio_messages import prediction_request
from apps.core.errors import Unavailable
from apps.lmstudio import services
from apps.lmstudio.server import list_models, predict
from apps.lmstudio.services import LMStudio

LIST_SECONDS = 5.0


class LMStudioProvider:
    """Streams rounds with tools over LM Studio's websocket."""

    id = "lmstudio"
    label = "LM Studio"
    system_prompt = SYSTEM_PROMPT

    def __init__(self) -> None:
        self._models = ModelListCache(list_chat_models)

    async def origin(self) -> str:
        return str((await current_server()).address)

    async def availability(self) -> Availability:
        return await availability_of(self.models())

    async def models(self) -> Sequence[Model]:
        """List the models, cached for 30 s. Raises Unavailable that says what is missing."""
        return await self._models.models(await current_server())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        decoder = PredictionDecoder()
        failure: Unavailable | None = None
        prediction_stream = predict(
            await current_server(),
            request.model,
            lambda context: prediction_request(request, context),
        )
        async with aclosing(prediction_stream) as prediction:
            try:
                async for prediction_event in prediction:
                    for event in decoder.feed(prediction_event):
                        yield event
            except Unavailable as error:
                failure = error
        for event in decoder.end():
            yield event
        if failure:
            message, retryable = failure.message, failure.retryable
            raise Unavailable(message, code="PROVIDER_ERROR", retryable=retryable) from failure
        if decoder.problem:
            raise Unavailable(decoder.problem, code="PROVIDER_ERROR")


async def typed_in_thread(address: str, key: str) -> LMStudio:
    """The server of the fields of a form. Raises InvalidInput."""
    server: LMStudio = await database_sync_to_async(services.typed)(address, key)
    return server


async def current_server() -> LMStudio:
    """The server for lists and answers."""
    # A read need not wait for the one thread that Django's writes share.
    read = database_sync_to_async(services.server, thread_sensitive=False)
    server: LMStudio = await read()
    return server


async def list_chat_models(server: LMStudio) -> Sequence[Model]:
    """List the chat models of a server. Raises Unavailable that says what is missing."""
    try:
        downloaded = await list_models(server.address, LIST_SECONDS, server.token)
    except Unavailable as error:
        raise _provider_unavailable(error.message, error.retryable) from error
    models = [Model(model.key, model.name, model.type) for model in downloaded if not model.embeds]
    if not models:
        raise _provider_unavailable("LM Studio has no chat model: download one there.", True)
    return models


def _provider_unavailable(message: str, retryable: bool) -> Unavailable:
    return Unavailable(message, code="PROVIDER_UNAVAILABLE", retryable=retryable)
