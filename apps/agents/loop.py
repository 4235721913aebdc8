"""One answer, from question to terminal event: rounds of a provider, and the tools it asks for.

    TurnStarted, then for each round TextDelta | ReasoningDelta …, for each call ToolStarted and
    ToolFinished, and one of TurnFinished | TurnFailed at the end.

Closing the generator closes the provider's stream, which stops the generation; whoever closes it
says TurnStopped, with what the meter has counted by then. Errors that are not ours are bugs: they
propagate to the runner.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import assert_never

from apps.agents.events import (
    ChatEvent,
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ThreadNamed,
    ToolCallRequested,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    UsageReported,
    Warned,
)
from apps.agents.history import tool_message
from apps.agents.messages import Message, ToolCall
from apps.agents.metering import Meter
from apps.agents.pace import Voice, pace
from apps.agents.patience import Patience
from apps.agents.prompts import LAST_ROUND
from apps.agents.providers.base import ModelRequest, Provider
from apps.agents.tools import execute
from apps.retrieval.tools import Tool
from codeinfo.conf import knobs
from codeinfo.errors import CodeinfoError, Unavailable
from codeinfo.telemetry import step

log = logging.getLogger("codeinfo.agents")

Events = AsyncGenerator[ChatEvent, None]


async def run(
    provider: Provider, request: ModelRequest, max_rounds: int, meter: Meter | None = None
) -> Events:
    """Stream the answer to `request`. After `max_rounds` rounds of tools it must come without."""
    with pace.answer(request.conversation_id) as voice:
        answer = _Answer(provider, request, max_rounds, meter or Meter(), voice)
        yield TurnStarted()
        try:
            async with aclosing(answer.rounds()) as events:
                async for event in events:
                    yield event
        except CodeinfoError as error:
            yield answer.failed(error)
        else:
            usage, timing = answer.meter.read()
            yield TurnFinished(usage, timing)


class _Answer:
    def __init__(
        self,
        provider: Provider,
        request: ModelRequest,
        max_rounds: int,
        meter: Meter,
        voice: Voice,
    ) -> None:
        self.provider, self.request, self.max_rounds = provider, request, max_rounds
        self.meter, self.voice = meter, voice
        self.messages = list(request.messages)
        self.call_ids: set[str] = set()
        # Of the round under way:
        self.pieces: list[str] = []
        self.calls: list[ToolCall] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def rounds(self) -> Events:
        for left in range(self.max_rounds, -1, -1):
            asked = self._ask(self.request.tools if left else ())
            with step("model round", provider=self.provider.id):
                async with aclosing(asked) as events:
                    async for event in events:
                        yield event
            if not self.calls or not left:
                break
            async with aclosing(self._run_tools()) as events:
                async for event in events:
                    yield event
            if left == 1:
                self._announce_last_round()
        if not self.text.strip():
            raise Unavailable("The model ended without an answer.", code="PROVIDER_ERROR")

    async def _ask(self, tools: Sequence[Tool]) -> Events:
        """One round of the provider; leaves its text and its calls behind."""
        self.pieces, self.calls = [], []
        request = replace(self.request, messages=tuple(self.messages), tools=tools)
        seconds, idle_seconds = knobs().first_byte_seconds, knobs().idle_seconds
        async with aclosing(self.provider.stream(request)) as stream, Patience() as patience:
            while (event := await _next(stream, patience, seconds)) is not None:
                if not isinstance(event, ThreadNamed | Warned):
                    seconds = idle_seconds
                    self.meter.tick()
                match event:
                    case TextDelta(text=text):
                        self.pieces.append(text)
                        yield event
                    case ReasoningDelta() | ToolStarted() | ToolFinished():
                        yield event
                    case ThreadNamed() | Warned():
                        yield event
                    case ToolCallRequested(call=call):
                        self.calls.append(self._named(call))
                    case UsageReported(usage=usage):
                        self.meter.count(usage)
                    case Heartbeat():
                        pass
                    case _:
                        assert_never(event)
                await self.voice.breathe()
        self.meter.end_round()

    def _named(self, call: ToolCall) -> ToolCall:
        """The call under an id that no other call of this answer has; some servers start anew."""
        wanted = call.id or "call"
        id, number = wanted, 1
        while id in self.call_ids:
            number += 1
            id = f"{wanted}-{number}"
        self.call_ids.add(id)
        return replace(call, id=id)

    async def _run_tools(self) -> Events:
        """The round's calls, one after the other."""
        self.messages.append(Message("assistant", self.text, tuple(self.calls)))
        for call in self.calls:
            yield ToolStarted(call)
            result = await execute(call, self.request.tools)
            yield ToolFinished(result)
            self.messages.append(tool_message(result))

    def _announce_last_round(self) -> None:
        # Beside the last result, not as a message of its own: some chat templates insist on
        # user and assistant taking turns.
        last = self.messages[-1]
        self.messages[-1] = replace(last, text=f"{last.text}\n\n{LAST_ROUND}")

    def failed(self, error: CodeinfoError) -> TurnFailed:
        retryable = isinstance(error, Unavailable) and error.retryable
        provider, model = self.provider.id, self.request.model
        facts = {"provider": provider, "model": model, "code": error.code, "retryable": retryable}
        # Without the error's words: they may quote the server's.
        message = "answer of %s (%s) failed: %s"
        log.warning(message, provider, model, error.code, extra={"context": facts})
        usage, timing = self.meter.read()
        return TurnFailed(error.code, error.message, retryable, usage, timing)


async def _next(
    stream: AsyncGenerator[ModelEvent, None], patience: Patience, seconds: float
) -> ModelEvent | None:
    """The next event, or None at the end.

    Raises Unavailable (PROVIDER_TIMEOUT) after so many seconds of silence.
    """
    try:
        return await patience.wait(anext(stream, None), seconds)
    except TimeoutError as error:
        raise Unavailable(
            f"The model was silent for {seconds:g} seconds.", code="PROVIDER_TIMEOUT"
        ) from error
