"""Translation of notifications that the stand-in cannot cause."""

from typing import Any

import pytest

from apps.agents.events import (
    Heartbeat,
    ModelEvent,
    ToolFinished,
    ToolStarted,
    UsageReported,
    Warned,
)
from apps.agents.messages import Usage
from apps.agents.providers.codex.failures import LOGIN_AGAIN, quoted, turn_failure
from apps.agents.providers.codex.translation import TurnTranslator
from apps.agents.providers.codex.wire import OWN_SERVER
from apps.core.errors import Unavailable
from apps.tools.capping import FULL_META_KEY

COMMAND = {"type": "commandExecution", "id": "1", "command": "ls", "cwd": "/w"}
OTHERS = {"type": "mcpToolCall", "id": "2", "server": "docs", "tool": "look", "arguments": {"q": 1}}
FOREIGN = {"content": [{"type": "text", "text": "found"}]}


def events(*notifications: tuple[str, dict[str, Any]]) -> list[ModelEvent]:
    translator = TurnTranslator()
    return [
        event for method, payload in notifications for event in translator.feed(method, payload)
    ]


def item(method: str, **item: Any) -> tuple[str, dict[str, Any]]:
    return f"item/{method}", {"item": item}


@pytest.mark.parametrize(
    ("begun", "more", "name", "payload"),
    [
        (COMMAND, {"aggregatedOutput": "a b", "exitCode": 0}, "shell", "a b"),
        (OTHERS, {"result": FOREIGN}, "docs.look", "found"),
        ({"type": "webSearch", "id": "3", "query": "q"}, {"results": ["r"]}, "web_search", "r"),
        ({"type": "fileChange", "id": "4"}, {"changes": [{"path": "p"}]}, "apply_patch", "p"),
    ],
)
def test_every_action_of_codex_is_a_tool_row(
    begun: dict[str, Any], more: dict[str, Any], name: str, payload: str
) -> None:
    done = {**begun, **more, "status": "completed", "durationMs": 1500}
    started, finished = (
        e
        for e in events(item("started", **begun), item("completed", **done))
        if not isinstance(e, Heartbeat)
    )
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert started.call.name == name
    assert finished.result.call == started.call
    assert payload in str(finished.result.payload)
    assert finished.result.seconds == 1.5


def test_a_page_shows_what_the_model_has_of_another_server() -> None:
    """Only our own server has rows for the page alone."""
    result = {"structuredContent": {"found": 1}, "_meta": {FULL_META_KEY: {"results": []}}}
    for server, shown in (("docs", {"found": 1}), (OWN_SERVER, {"results": []})):
        call = {**OTHERS, "server": server}
        *_, finished = events(
            item("started", **call), item("completed", **call, status="completed", result=result)
        )
        assert isinstance(finished, ToolFinished)
        assert finished.result.payload == shown


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_failed_command_is_an_error(status: str) -> None:
    finished = events(item("started", **COMMAND), item("completed", **COMMAND, status=status))[-1]
    assert isinstance(finished, ToolFinished)
    assert finished.result.error_message == f"The call was {status}."


def test_an_error_without_a_result_is_shown_without_its_trace() -> None:
    error = {"message": "no such host\nStack backtrace:\n 0: main"}
    finished = events(item("completed", **OTHERS, status="failed", error=error))[-1]
    assert isinstance(finished, ToolFinished)
    assert (finished.result.error_code, finished.result.error_message) == (
        "TOOL_FAILED",
        "no such host",
    )


def test_calls_that_are_open_at_the_end_are_closed_before_it() -> None:
    translator = TurnTranslator()
    for method, payload in (item("started", **COMMAND), item("started", **OTHERS)):
        list(translator.feed(method, payload))
    received = []
    with pytest.raises(Unavailable):
        for event in translator.feed("turn/completed", {"turn": {"status": "failed"}}):
            received.append(event)
    results = [event.result for event in received if isinstance(event, ToolFinished)]
    assert [(each.error_code, each.error_message) for each in results] == [
        ("CANCELLED", "The answer ended during this call.")
    ] * 2


def test_a_repeated_usage_report_is_counted_once() -> None:
    def usage_report(total: int, last: int) -> tuple[str, dict[str, Any]]:
        usage = {
            "total": {"totalTokens": total},
            "last": {"inputTokens": last, "totalTokens": last},
        }
        return "thread/tokenUsage/updated", {"tokenUsage": usage}

    last = events(usage_report(100, 10), usage_report(100, 10), usage_report(105, 5))[-1]
    assert last == UsageReported(Usage(15, 0, 15, 0))


def test_only_an_error_that_codex_retries_is_a_warning() -> None:
    error = {"error": {"message": "Reconnecting... 1/3"}}
    (warned,) = events(("error", {**error, "willRetry": True}))
    assert warned == Warned("Reconnecting... 1/3")
    (silent,) = events(("error", {**error, "willRetry": False}))
    assert silent == Heartbeat()


@pytest.mark.parametrize(
    ("info", "retryable"),
    [
        ("unauthorized", False),
        ("usageLimitExceeded", False),
        ("serverOverloaded", True),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, False),
        ({"httpConnectionFailed": {"httpStatusCode": 503}}, True),
        ({"responseStreamDisconnected": {}}, True),
        (None, True),
    ],
)
def test_retryable_failures(info: Any, retryable: bool) -> None:
    failure = turn_failure({"message": "no", "codexErrorInfo": info})
    assert failure.retryable is retryable
    assert (failure.message == LOGIN_AGAIN) is ("401" in str(info) or info == "unauthorized")


def test_keys_are_not_repeated() -> None:
    message = quoted("Incorrect API key provided: sk-proj-abcdefgh123. \x1b[31mBye\x1b[0m")
    assert "abcdefgh" not in message
    assert message.endswith("Bye")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('unexpected status 400: {"error": "No such model."}, url: x', "400: No such model., url"),
        ('{"detail": "Not allowed."}', "Codex failed: Not allowed."),
        ('{"message": "Too long."}', "Codex failed: Too long."),
        ('{"error": {"code": 1}}', '{"error": {"code": 1}}'),
        ("{" * 5_000, "{{{"),
        ('{"a":' * 5_000, '{"a":'),
    ],
)
def test_json_of_the_model_server_is_shown_as_its_sentence(message: str, shown: str) -> None:
    assert shown in turn_failure({"message": message}).message
