"""How tools wait for the answer of a run, and return it."""

from collections.abc import Coroutine, Mapping
from typing import Any

from apps.agents.events import TurnFailed, TurnFinished, TurnStopped
from apps.conversations import runner
from apps.conversations.models import ID_PATTERN
from apps.conversations.parts import answer
from apps.conversations.stream import RunLog
from apps.core.errors import InvalidInput, Unavailable
from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, closed, object_schema, typed
from apps.core.values.surrogates import storable
from apps.mcp.starting import begin
from apps.mcp.steps import describe_step
from apps.mcp.types import Call


def required_text(arguments: Mapping[str, Any], name: str) -> str:
    """The argument with characters that databases refuse replaced. Raises InvalidInput if blank."""
    text = storable(arguments[name])
    if not text.strip():
        raise InvalidInput(f"{name} must not be blank.")
    return text


async def to_end(start: Coroutine[Any, Any, RunLog], call: Call) -> RunLog:
    """Start a run, and return its log at the end. A cancelled call stops the run."""
    log = await begin(start, _stop)
    try:
        await _follow(log, call)
    finally:
        # No effect on a run that has ended.
        runner.stop(log)
    return log


async def _stop(log: RunLog) -> None:
    runner.stop(log)


async def _follow(log: RunLog, call: Call) -> None:
    """Wait for the end of a run, and report each step as it begins (`sse` adds heartbeats)."""
    reported, warned = "", 0
    while not log.finished:
        seq, step = log.seq, describe_step(log.transcript.parts)
        for warning in log.transcript.warnings[warned:]:
            await call.progress(warning)
            warned += 1
        if step != reported:
            await call.progress(step)
            reported = step
        await log.wait(seq)


def result(log: RunLog) -> JSON:
    """`{conversationId, modelId, segments, status?}`, with the last text of the answer.

    Raises Unavailable with the code of a failed answer.
    """
    wire = {
        "conversationId": log.conversation_id,
        "modelId": log.model,
        "segments": [{"type": "answer", "text": answer(log.transcript.parts)}],
    }
    match log.end:
        case TurnFinished():
            return wire
        case TurnStopped():
            return wire | {"status": "stopped"}
        case TurnFailed(code=code, message=message, retryable=retryable):
            raise failed(log, code, message, retryable)


def failed(log: RunLog, code: str, message: str, retryable: bool) -> Unavailable:
    again = (
        f"Ask again with conversationId {log.conversation_id!r}: what was said so far is kept."
        if retryable
        else "Asking again will not help until that is put right."
    )
    details = {"conversationId": log.conversation_id}
    return Unavailable(f"{message} {again}", code=code, details=details, retryable=retryable)


CONVERSATION_ID: JSON = {
    "type": "string",
    "minLength": 1,
    "maxLength": 128,
    "pattern": ID_PATTERN.replace(r"\Z", "$"),
    "description": (
        "The `conversationId` of an earlier answer, to ask a follow-up that remembers it. "
        "Leave it out for a new subject."
    ),
}
_SEGMENT = closed(object_schema({"type": TEXT | {"const": "answer"}, "text": TEXT}))
ANSWER: JSON = {
    "conversationId": typed(
        "string", "Send it back with the next question to go on in this conversation."
    ),
    "modelId": typed("string", "The model that answered; search: none, passages are quoted."),
    "segments": {
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "description": "The answer in Markdown, and nothing else; empty if none was given.",
        "items": _SEGMENT,
    },
}


def stopped(description: str) -> JSON:
    """The member of an answer that was stopped."""
    return {"status": TEXT | {"const": "stopped", "description": description}}


STOPPED = stopped("Somebody stopped the answer: the text is what was said by then.")
