"""The agent loop: alternate a provider's rounds and the tools it calls until an answer is complete.

    TurnStarted
    for each round: (TextDelta | ReasoningDelta | TextReclassified)*,
        then ToolStarted, ToolFinished for each call
    TurnFinished | TurnFailed

Closing the generator closes the provider's stream, which stops the generation. The caller that
closes it emits TurnStopped with the meter's counts. Exceptions other than CodeinfoError are bugs
and propagate to the caller.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from time import monotonic
from typing import assert_never

from apps.agents import limits
from apps.agents.events import (
    ChatEvent,
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    TextReclassified,
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
    MAX_RECORDED_CALLS,
    AnswerLimits,
    call_limit_result,
    drop_implausible,
    fit_delta,
    past_time,
    truncate_call,
    truncate_result,
)
from apps.agents.messages import Message, ToolCall, ToolResult
from apps.agents.metering import Meter
from apps.agents.prompts import LAST_ROUND
from apps.agents.providers.base import ModelRequest, Provider
from apps.agents.stream_scheduler import ScheduledStream, stream_scheduler
from apps.agents.tools import execute
from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.monitoring.telemetry import step
from apps.tools.tool import Tool

log = logging.getLogger("codeinfo.agents")

Events = AsyncGenerator[ChatEvent, None]


async def run(
    provider: Provider, request: ModelRequest, max_rounds: int, meter: Meter | None = None
) -> Events:
    """Stream the answer to `request`. The round after `max_rounds` rounds has no tools."""
    with stream_scheduler.stream(request.conversation_id) as scheduled_stream:
        answer = _Answer(provider, request, max_rounds, meter or Meter(), scheduled_stream)
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


class _Silence:
    """How long a provider may still be silent in a round.

    Warnings do not renew the time: Codex reports reconnects for as long as its server is away.
    """

    def __init__(self) -> None:
        self.seconds = self.left = config().first_byte_seconds
        self._idle_seconds = config().idle_seconds
        self._warning = ""

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Count the time of a wait that ends with an event; pauses of the reader do not count."""
        started = monotonic()
        yield
        self.left -= monotonic() - started

    def note(self, event: ModelEvent) -> None:
        match event:
            case Warned(message=message):
                self._warning = message
            case ThreadNamed():
                pass
            case _:
                self.seconds = self.left = self._idle_seconds
                self._warning = ""

    @property
    def message(self) -> str:
        silent = f"The model was silent for {self.seconds:g} seconds."
        return f"{silent} Its last warning: {self._warning}" if self._warning else silent


class _Answer:
    def __init__(
        self,
        provider: Provider,
        request: ModelRequest,
        max_rounds: int,
        meter: Meter,
        scheduled_stream: ScheduledStream,
    ) -> None:
        self.provider, self.request, self.max_rounds = provider, request, max_rounds
        self.meter, self.scheduled_stream = meter, scheduled_stream
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
            round_events = self._run_round(self.request.tools if left else ())
            with step("model round", provider=self.provider.id):
                async with aclosing(round_events) as events:
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

    async def _run_round(self, tools: Sequence[Tool]) -> Events:
        """Stream one round of the provider; collects `pieces` and `calls`."""
        self.pieces, self.calls = [], []
        request = replace(self.request, messages=tuple(self.messages), tools=tools)
        silence = _Silence()
        async with aclosing(self.provider.stream(request)) as stream:
            while (event := await self._next(stream, silence)) is not None:
                silence.note(event)
                if not isinstance(event, ThreadNamed | Warned):
                    self.meter.tick()
                shown = self._handle(event)
                if shown is not None:
                    yield shown
                self.limits.text.check()
                self.limits.reasoning.check()
                await self.scheduled_stream.throttle()
        self.meter.end_round()

    def _handle(self, event: ModelEvent) -> ChatEvent | None:
        """Apply a provider's event; return the ChatEvent to emit, if any."""
        match event:
            case TextDelta() | TextReclassified():
                return self._apply_text(event)
            case ReasoningDelta():
                return fit_delta(event, self.limits.reasoning)
            case ToolStarted():
                return self.limits.admit_provider_call(event)
            case ToolFinished():
                return truncate_result(event)
            case Warned():
                return event if self.limits.admit_warning() else None
            case ThreadNamed():
                return event
            case ToolCallRequested(call=call):
                self._record_call(call)
            case UsageReported(usage=usage):
                self.meter.count(drop_implausible(usage))
            case Heartbeat():
                pass
            case _:
                assert_never(event)
        return None

    def _apply_text(self, event: TextDelta | TextReclassified) -> ChatEvent | None:
        if isinstance(event, TextReclassified):
            self.pieces.clear()
            return event
        shown = fit_delta(event, self.limits.text)
        self.pieces.append(shown.text if shown else "")
        return shown

    async def _next(
        self, stream: AsyncGenerator[ModelEvent, None], silence: "_Silence"
    ) -> ModelEvent | None:
        """Return the next event, or None at the end.

        Raises Unavailable: PROVIDER_TIMEOUT when `silence` has no time left, PROVIDER_ERROR when
        the time of the whole answer is used up.
        """
        left = self.limits.seconds_left()
        try:
            with silence.wait():
                async with asyncio.timeout(min(silence.left, left)):
                    return await anext(stream, None)
        except TimeoutError as error:
            if left <= silence.left:
                raise past_time() from error
            raise Unavailable(silence.message, code="PROVIDER_TIMEOUT") from error

    def _record_call(self, call: ToolCall) -> None:
        if len(self.calls) < MAX_RECORDED_CALLS:
            self.calls.append(self._with_unique_id(truncate_call(call)))

    def _with_unique_id(self, call: ToolCall) -> ToolCall:
        """Make the call's id unique within the answer; some servers reuse ids in each round."""
        base = call.id or "call"
        id, number = base, 1
        while id in self.call_ids:
            number += 1
            id = f"{base}-{number}"
        self.call_ids.add(id)
        return replace(call, id=id)

    async def _run_tools(self) -> Events:
        """Run the round's calls in order."""
        self.messages.append(Message("assistant", self.text, tuple(self.calls)))
        most = limits.MAX_TOOL_CALLS
        for number, call in enumerate(self.calls):
            yield ToolStarted(call)
            result = await self._result(call) if number < most else call_limit_result(call)
            yield ToolFinished(result)
            self.messages.append(tool_message(result))

    async def _result(self, call: ToolCall) -> ToolResult:
        """Run one call. Raises Unavailable (PROVIDER_ERROR) if the answer's time runs out."""
        try:
            async with asyncio.timeout(self.limits.seconds_left()) as timer:
                return await execute(call, self.request.tools)
        except TimeoutError as error:
            if timer.expired():
                raise past_time() from error
            raise

    def _announce_last_round(self) -> None:
        # Appended to the last result, because some chat templates require alternating roles.
        last = self.messages[-1]
        self.messages[-1] = replace(last, text=f"{last.text}\n\n{LAST_ROUND}")

    def failed(self, error: CodeinfoError) -> TurnFailed:
        retryable = isinstance(error, Unavailable) and error.retryable
        provider, model = self.provider.id, self.request.model
        facts = {"provider": provider, "model": model, "code": error.code, "retryable": retryable}
        # Without the error's message: it may quote the server.
        message = "answer of %s (%s) failed: %s"
        log.warning(message, provider, model, error.code, extra={"context": facts})
        usage, timing = self.meter.read()
        return TurnFailed(error.code, error.message, retryable, usage, timing)
