"""Decode LM Studio's prediction events into ModelEvents."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from apps.agents.events import Heartbeat, ModelEvent, ToolCallRequested, UsageReported
from apps.agents.limits import max_recorded_calls, truncate_call
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.calls import with_arguments
from apps.agents.providers.characters import Characters, clean
from apps.agents.providers.lmstudio_messages import own_names
from apps.agents.reasoning import MarkerParser
from apps.lmstudio.types import (
    ModelLoading,
    PredictionEnd,
    PredictionEvent,
    TextFragment,
    ToolCallReceived,
)

REASONING_START, REASONING_END = "<think>", "</think>"

# Stop reason of the LM Studio SDK → why the answer is incomplete.
UNFINISHED = {
    "userStopped": "The answer was stopped in LM Studio.",
    "modelUnloaded": "The model was unloaded before the answer was complete.",
    "failed": "LM Studio failed before the answer was complete.",
    "maxPredictedTokensReached": (
        "The model reached its output limit before the answer was complete."
    ),
    "contextLengthReached": (
        "The answer has filled the model's context: load the model in LM Studio with a longer one."
    ),
}


class PredictionDecoder:
    """Decodes one round: `feed` each event, call `end`, then read `problem`."""

    def __init__(self) -> None:
        self._parser = MarkerParser()
        self._characters = Characters()
        self._thinking = False
        self._calls: list[ToolCall] = []
        self._prediction_end: PredictionEnd | None = None

    def feed(self, event: PredictionEvent) -> Sequence[ModelEvent]:
        match event:
            case TextFragment():
                return self._decode_fragment(event)
            case ToolCallReceived():
                if len(self._calls) < max_recorded_calls():
                    self._calls.append(_call(event))
                return [Heartbeat()]
            case ModelLoading():
                return [Heartbeat()]
            case PredictionEnd():
                self._prediction_end = event
                usage = Usage(event.prompt, event.predicted, event.total)
                return [] if usage == Usage() else [UsageReported(usage)]

    def _decode_fragment(self, fragment: TextFragment) -> Sequence[ModelEvent]:
        """Decode text. LM Studio labels the reasoning of models that it knows; other models write
        markers. Labels are converted to markers, so that one parser handles both."""
        if fragment.kind not in ("none", "reasoning"):
            # The model's own reasoning tag.
            return [Heartbeat()]
        thinking = fragment.kind == "reasoning"
        marker = (
            "" if thinking == self._thinking else REASONING_START if thinking else REASONING_END
        )
        self._thinking = thinking
        text = self._characters.feed(fragment.text)
        return self._parser.feed(marker + text) or [Heartbeat()]

    def end(self) -> Sequence[ModelEvent]:
        """Return the buffered text and, if the round is complete, its calls."""
        events: list[ModelEvent] = [*self._parser.flush()]
        if self._prediction_end and not self.problem:
            events += [ToolCallRequested(call) for call in self._calls]
        return events

    @property
    def problem(self) -> str | None:
        """A sentence that says why the answer is incomplete, or None."""
        return UNFINISHED.get(self._prediction_end.reason) if self._prediction_end else None


def _call(received: ToolCallReceived) -> ToolCall:
    id, name = clean(received.id or "") or f"call_{uuid4().hex[:24]}", clean(received.name)
    call = with_arguments(ToolCall(id, name), received.arguments)
    return truncate_call(replace(call, arguments=own_names(call.arguments)))
