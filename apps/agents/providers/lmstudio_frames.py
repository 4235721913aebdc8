"""Decode LM Studio's prediction events into ModelEvents."""

from collections.abc import Sequence
from dataclasses import replace

from apps.agents.events import Heartbeat, ModelEvent, ToolCallRequested, UsageReported
from apps.agents.limits import MAX_RECORDED_CALLS, truncate_call
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.calls import new_id, with_arguments
from apps.agents.providers.characters import Characters, clean
from apps.agents.providers.lmstudio_messages import own_names
from apps.agents.providers.printed_calls import PrintedCalls
from apps.agents.reasoning import MarkerParser
from apps.lmstudio.types import (
    ModelLoading,
    PredictionEnd,
    PredictionEvent,
    TextFragment,
    ToolCallReceived,
)

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

    def __init__(self, printed: PrintedCalls | None = None) -> None:
        self._parser = MarkerParser()
        self._printed = printed or PrintedCalls()
        self._characters = Characters()
        self._thinking = False
        self._calls: list[ToolCall] = []
        self._prediction_end: PredictionEnd | None = None

    def feed(self, event: PredictionEvent) -> Sequence[ModelEvent]:
        match event:
            case TextFragment():
                return self._decode_fragment(event)
            case ToolCallReceived():
                if len(self._calls) < MAX_RECORDED_CALLS:
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
        markers."""
        if fragment.kind not in ("none", "reasoning"):
            # The model's own reasoning tag.
            return [Heartbeat()]
        thinking = fragment.kind == "reasoning"
        deltas = [] if thinking == self._thinking else self._parser.switch(thinking=thinking)
        self._thinking = thinking
        deltas += self._parser.feed(self._characters.feed(fragment.text))
        return self._printed.feed(deltas) or [Heartbeat()]

    def end(self) -> Sequence[ModelEvent]:
        """Return the buffered text and, if the round is complete, its calls."""
        has_calls = bool(self._calls)
        is_complete = self._prediction_end is not None and not self.problem
        events: list[ModelEvent] = []
        events += self._printed.feed(self._parser.flush(calls=has_calls))
        rest, printed = self._printed.end(is_complete=is_complete, has_calls=has_calls)
        events += rest
        if is_complete:
            printed = [replace(call, arguments=own_names(call.arguments)) for call in printed]
            events += [ToolCallRequested(call) for call in self._calls or printed]
        return events

    @property
    def problem(self) -> str | None:
        """A sentence that says why the answer is incomplete, or None."""
        if not self._prediction_end:
            return None
        return UNFINISHED.get(self._prediction_end.reason) or self._printed.problem or None


def _call(received: ToolCallReceived) -> ToolCall:
    id, name = clean(received.id or "") or new_id(), clean(received.name)
    call = with_arguments(ToolCall(id, name), received.arguments)
    return truncate_call(replace(call, arguments=own_names(call.arguments)))
