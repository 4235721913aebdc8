"""LM Studio: whether it answers, its models, and a round of one.

Where it is comes from the LM Studio page or LMSTUDIO_BASE_URL (`apps.lmstudio`), which speaks to it
through its SDK; here its models and what they say become those of every provider.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from channels.db import database_sync_to_async

from apps.agents.events import ModelEvent
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest
from apps.agents.providers.listing import Listing, available
from apps.agents.providers.lmstudio_frames import Round
from apps.agents.providers.lmstudio_messages import question
from apps.core.addresses import Address
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.lmstudio import services
from apps.lmstudio.server import list_models, predict

LIST_SECONDS = 5.0


class LMStudioProvider:
    """Rounds with tools, streamed over LM Studio's own websocket."""

    id = "lmstudio"
    label = "LM Studio"
    system_prompt = SYSTEM_PROMPT

    def __init__(self) -> None:
        self._listing = Listing(_list)

    async def availability(self) -> Availability:
        return await available(self.models())

    async def models(self) -> Sequence[Model]:
        """Raises Unavailable whose message says what is missing. Asked at most every 30 s."""
        return await self._listing.models(await _address())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        address = await _address()
        round_ = Round()
        failure: Unavailable | None = None
        rounds = predict(address, request.model, lambda context: question(request, context))
        async with aclosing(rounds) as heard:
            try:
                async for one in heard:
                    for event in round_.feed(one):
                        yield event
            except Unavailable as error:
                failure = error
        for event in round_.end():
            yield event
        if failure:
            message, retryable = failure.message, failure.retryable
            raise Unavailable(message, code="PROVIDER_ERROR", retryable=retryable) from failure
        if round_.wrong:
            raise Unavailable(round_.wrong, code="PROVIDER_ERROR")


async def _address() -> Address:
    # A read need not queue for the one thread that Django's writes share.
    read = database_sync_to_async(services.current, thread_sensitive=False)
    address: Address = await read()
    return address


async def _list(address: Address) -> Sequence[Model]:
    try:
        found = await list_models(address, LIST_SECONDS, config().lmstudio_api_token)
    except Unavailable as error:
        raise _away(error.message, error.retryable) from error
    models = [Model(model.key, model.name, model.type) for model in found if not model.embeds]
    if not models:
        raise _away("LM Studio has no chat model: download one there.", True)
    return models


def _away(message: str, retryable: bool) -> Unavailable:
    return Unavailable(message, code="PROVIDER_UNAVAILABLE", retryable=retryable)
