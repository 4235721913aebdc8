"""Fit a conversation into a model's context: calls paired with results, roles alternating."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import cast

from apps.agents.messages import Message, ToolResult
from apps.agents.prompts import NO_TOOLS
from apps.agents.quoting import quote_result, truncate_result_text

# A tool result is never cut to fewer characters: a shorter one is useless to a model.
MIN_RESULT_CHARS = 2_000


def tool_message(result: ToolResult) -> Message:
    """Return the message that carries a result to the model."""
    return Message("tool", quote_result(result), tool_result=result)


def fit(messages: Sequence[Message], max_chars: int) -> list[Message]:
    """Return the messages to send, in at most about `max_chars` characters.

    Drops whole turns, oldest first; keeps system messages and the last turn. If the last turn alone
    is too long, cuts its tool results, oldest first, and adds a note to each.
    """
    system = [message for message in messages if message.role == "system"]
    turns = list(_turns(tidy([message for message in messages if message.role != "system"])))
    room = max_chars - count_chars(system)
    while len(turns) > 1 and sum(map(count_chars, turns)) > room:
        del turns[0]
    if len(turns) == 1:
        turns = [_truncate_results(turns[0], room)]
    return [*system, *(message for turn in turns for message in turn)]


def shorten(messages: Sequence[Message], max_chars: int) -> list[Message]:
    """As `fit`, but cut tool results first, oldest first, those of the last turn to nothing if need
    be. For a server that has said that its context is too small."""
    for least in (MIN_RESULT_CHARS, 0):
        messages = _truncate_results(list(messages), max_chars, least)
    return fit(messages, max_chars)


def without_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages for a model that knows no tools: results become text of the user."""
    plain: list[Message] = []
    for message in messages:
        match message.role:
            case "system":
                plain.append(replace(message, text=f"{message.text}\n\n{NO_TOOLS}"))
            case "tool":
                plain.append(Message("user", message.text))
            case _:
                plain.append(replace(message, tool_calls=()))
    return tidy(plain)


def tidy(messages: Sequence[Message]) -> list[Message]:
    """Return messages that every server accepts.

    Removes calls without a result, results without a call and empty messages, and joins
    consecutive user messages. Stopped and failed turns leave such sequences.
    """
    tidied: list[Message] = []
    for message in _paired(messages):
        if message.role == "user" and tidied and tidied[-1].role == "user":
            message = replace(message, text=f"{tidied.pop().text}\n\n{message.text}")
        if message.text.strip() or message.tool_calls:
            tidied.append(message)
    return tidied


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages, each call's result directly after it; drop what has no counterpart."""
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        following = takewhile(lambda m: m.role == "tool", messages[index + 1 :])
        results = {m.tool_result.call.id: m for m in following if m.tool_result}
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


def count_chars(messages: Sequence[Message]) -> int:
    """Characters of the texts and calls of messages."""
    return sum(
        len(m.text) + sum(len(c.name) + len(str(dict(c.arguments))) for c in m.tool_calls)
        for m in messages
    )


def _truncate_results(
    turn: list[Message], room: int, least: int = MIN_RESULT_CHARS
) -> list[Message]:
    for index, message in enumerate(turn):
        excess = count_chars(turn) - room
        if excess > 0 and message.tool_result:
            limit = max(least, len(message.text) - excess)
            turn[index] = replace(message, text=truncate_result_text(message.text, limit))
    return turn
