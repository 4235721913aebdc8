"""One answer, from question to terminal event: rounds of a provider, and the tools it asks for.

    TurnStarted, then for each round TextDelta | ReasoningDelta …, for each call ToolStarted and
    ToolFinished, and one of TurnFinished | TurnFailed at the end.

Closing the generator closes the provider's stream, which stops the generation; whoever closes it
says TurnStopped, with what the meter has counted by then. Errors that are not ours are bugs: they
propagate to the runner.
"""

import asyncio
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
from apps.agents.limits import (
    AnswerLimits,
    fits,
    kept_short,
    most_calls,
    one_too_many,
    own_result,
    plausible,
)
from apps.agents.messages import Message, ToolCall, ToolResult
from apps.agents.metering import Meter
from apps.agents.prompts import LAST_ROUND
from apps.agents.providers.base import ModelRequest, Provider
from apps.agents.stream_scheduler import ScheduledStream, stream_scheduler
from apps.agents.tools import execute
from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.limits import past
from apps.core.telemetry import step
from apps.retrieval.tools import Tool

log = logging.getLogger("codeinfo.agents")

Events = AsyncGenerator[ChatEvent, None]


async def run(
    provider: Provider, request: ModelRequest, max_rounds: int, meter: Meter | None = None
) -> Events:
    """Stream the answer to `request`. After `max_rounds` rounds of tools it must come without."""
    with stream_scheduler.answer(request.conversation_id) as voice:
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
        voice: ScheduledStream,
    ) -> None:
        self.provider, self.request, self.max_rounds = provider, request, max_rounds
        self.meter, self.voice = meter, voice
        self.limits = AnswerLimits(max_rounds)
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
        seconds, idle_seconds = config().first_byte_seconds, config().idle_seconds
        async with aclosing(self.provider.stream(request)) as stream:
            while (event := await self._next(stream, seconds)) is not None:
                if not isinstance(event, ThreadNamed | Warned):
                    seconds = idle_seconds
                    self.meter.tick()
                shown = self._heard(event)
                if shown is not None:
                    yield shown
                self.limits.text.check()
                self.limits.reasoning.check()
                await self.voice.throttle()
        self.meter.end_round()

    def _heard(self, event: ModelEvent) -> ChatEvent | None:
        """Note an event of the provider; what of it is shown."""
        match event:
            case TextDelta():
                shown = fits(event, self.limits.text)
                self.pieces.append(shown.text if shown else "")
                return shown
            case ReasoningDelta():
                return fits(event, self.limits.reasoning)
            case ToolStarted():
                return self.limits.own_call(event)
            case ToolFinished():
                return own_result(event)
            case Warned():
                return event if self.limits.warns(event) else None
            case ThreadNamed():
                return event
            case ToolCallRequested(call=call):
                self._note(call)
            case UsageReported(usage=usage):
                self.meter.count(plausible(usage))
            case Heartbeat():
                pass
            case _:
                assert_never(event)
        return None

    async def _next(
        self, stream: AsyncGenerator[ModelEvent, None], seconds: float
    ) -> ModelEvent | None:
        """The next event, or None at the end.

        Raises Unavailable: PROVIDER_TIMEOUT after so many seconds of silence, PROVIDER_ERROR when
        the time of the whole answer is over, however busy the provider is.
        """
        left = self.limits.seconds_left()
        try:
            async with asyncio.timeout(min(seconds, left)):
                return await anext(stream, None)
        except TimeoutError as error:
            if left <= seconds:
                raise past("max_answer_seconds") from error
            raise Unavailable(
                f"The model was silent for {seconds:g} seconds.", code="PROVIDER_TIMEOUT"
            ) from error

    def _note(self, call: ToolCall) -> None:
        if len(self.calls) < most_calls():
            self.calls.append(self._named(kept_short(call)))

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
        most = config().max_tool_calls
        for number, call in enumerate(self.calls):
            yield ToolStarted(call)
            result = await self._result(call) if number < most else one_too_many(call)
            yield ToolFinished(result)
            self.messages.append(tool_message(result))

    async def _result(self, call: ToolCall) -> ToolResult:
        """Raises Unavailable (PROVIDER_ERROR) when the time of the answer is over before it."""
        try:
            async with asyncio.timeout(self.limits.seconds_left()) as timer:
                return await execute(call, self.request.tools)
        except TimeoutError as error:
            if timer.expired():
                raise past("max_answer_seconds") from error
            raise

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
