"""A conversation as a model can take it: in pairs, in turns, and no longer than it may be."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import cast

from apps.agents.messages import Message, ToolResult
from apps.agents.quoting import as_data, shortened

# A tool result is never cut to less than this: what is left would be of no use.
LEAST_RESULT = 2_000


def tool_message(result: ToolResult) -> Message:
    """What the model is told about a result."""
    return Message("tool", as_data(result), tool_result=result)


def fit(messages: Sequence[Message], max_chars: int) -> list[Message]:
    """The messages to send, in at most about `max_chars` characters.

    Whole turns are left out, oldest first; system messages and the last turn stay. If the last turn
    alone is too long its tool results are cut, oldest first, each with a note that says so.
    """
    system = [message for message in messages if message.role == "system"]
    turns = list(_turns(tidy([message for message in messages if message.role != "system"])))
    room = max_chars - _size(system)
    while len(turns) > 1 and sum(map(_size, turns)) > room:
        del turns[0]
    if len(turns) == 1:
        turns = [_cut(turns[0], room)]
    return [*system, *(message for turn in turns for message in turn)]


def tidy(messages: Sequence[Message]) -> list[Message]:
    """What every server accepts: no call without its result, no result without its call, no empty
    message, no two user messages in a row. A turn that was stopped or failed leaves such things.
    """
    tidied: list[Message] = []
    for message in _paired(messages):
        if message.role == "user" and tidied and tidied[-1].role == "user":
            message = replace(message, text=f"{tidied.pop().text}\n\n{message.text}")
        if message.text.strip() or message.tool_calls:
            tidied.append(message)
    return tidied


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    """Each call that was answered, its result right behind; results without a call are left out."""
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        behind = takewhile(lambda m: m.role == "tool", messages[index + 1 :])
        results = {m.tool_result.call.id: m for m in behind if m.tool_result}
        calls = tuple(call for call in message.tool_calls if call.id in results)
        yield replace(message, tool_calls=calls)
        for call in calls:
            result = results[call.id]
            yield result if result.text else tool_message(cast(ToolResult, result.tool_result))


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _size(messages: Sequence[Message]) -> int:
    return sum(
        len(m.text) + sum(len(c.name) + len(str(dict(c.arguments))) for c in m.tool_calls)
        for m in messages
    )


def _cut(turn: list[Message], room: int) -> list[Message]:
    for index, message in enumerate(turn):
        excess = _size(turn) - room
        if excess > 0 and message.tool_result:
            limit = max(LEAST_RESULT, len(message.text) - excess)
            turn[index] = replace(message, text=shortened(message.text, limit))
    return turn
