"""The LM Studio provider.

`apps.lmstudio` talks to the server through its SDK. This module translates
its models and events to those of the Provider protocol.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from apps.agents.events import ModelEvent
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Model, ModelRequest
from apps.agents.providers.listing import ListingProvider
from apps.agents.providers.lmstudio_frames import PredictionDecoder
from apps.agents.providers.lmstudio_messages import prediction_request
from apps.agents.providers.openai_server import unavailable
from apps.agents.providers.printed_calls import PrintedCalls
from apps.core.errors import Unavailable
from apps.lmstudio.server import list_models, predict
from apps.servers.kinds import LMSTUDIO
from apps.servers.services import current_async
from apps.servers.types import Server

LIST_SECONDS = 5.0


class LMStudioProvider(ListingProvider):
    """Streams rounds with tools over LM Studio's websocket."""

    id = "lmstudio"
    label = "LM Studio"
    system_prompt = SYSTEM_PROMPT
    kind = LMSTUDIO

    def __init__(self) -> None:
        super().__init__(list_chat_models)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        decoder = PredictionDecoder(PrintedCalls.of(request))
        failure: Unavailable | None = None
        prediction_stream = predict(
            await current_async(LMSTUDIO),
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


async def list_chat_models(server: Server) -> Sequence[Model]:
    """List the chat models of a server. Raises Unavailable that says what is missing."""
    try:
        downloaded = await list_models(server, LIST_SECONDS)
    except Unavailable as error:
        raise unavailable(error.message, retryable=error.retryable) from error
    models = [Model(model.key, model.name, model.type) for model in downloaded if not model.embeds]
    if not models:
        raise unavailable("LM Studio has no chat model: download one there.", retryable=True)
    return models
