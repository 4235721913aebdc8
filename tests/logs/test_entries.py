"""Log lines: one entry each, redacted, and not forgeable."""

import json
import logging
import sys
from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client

from apps.logs.formatting import ConsoleFormatter, entry_of, to_json_line
from apps.logs.redaction import MAX_TEXT, clean


def record(message: str, *args: object, **context: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "codeinfo.x", "levelname": "WARNING", "msg": message, "context": context}
        | {"args": args}
    )


def line(message: str, *args: object, **context: object) -> str:
    return to_json_line(entry_of(record(message, *args, **context)))


def test_an_entry_has_the_shape_of_the_contract() -> None:
    entry = json.loads(line("hello", runId="r"))
    assert (entry["level"], entry["message"], entry["source"]) == ("warn", "hello", "server")
    assert entry["timestamp"].endswith("Z") and entry["context"] == {"runId": "r"}


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.parametrize(
    ("evil", "shown"),
    [
        ("a\nlevel: info", "a\\u000alevel: info"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2066b\u200bc", "a\\u2066b\\u200bc"),
        ("\r\n\x00\x85", "\\u000d\\u000a\\u0000\\u0085"),
        ("\udcff\U000e0041", "\\udcff\\U000e0041"),
        ("Grüße, 東京 🗼", "Grüße, 東京 🗼"),
    ],
)
def test_no_text_can_forge_or_hide_a_line(evil: str, shown: str) -> None:
    written = line(evil, **{evil: {"inner": [evil]}})
    assert written.isascii() and written.isprintable()
    entry = json.loads(written)
    assert entry["message"] == shown
    (name,) = entry["context"]
    assert name == shown
    assert "\x1b" not in str(entry) and "\u202e" not in str(entry)
    assert "\x1b" not in ConsoleFormatter().format(record(evil, x=evil))


# (value, its redacted form). The canary must disappear.
SECRETS = [
    {"Authorization": "canary"},
    {"headers": {"X-API-Key": "canary", "Cookie": "sessionid=canary"}},
    {"list": [{"api_key": ["canary"]}, ({"clientSecret": {"a": "canary"}},)]},
    {"PASSWORD": "canary", "passwd": "canary", "access_token": "canary"},
    "Authorization: Bearer canary-123456",
    "sent with bearer canary.abc/def+g=",
    "key sk-canary-0123456789 was refused",
    "ghp_canary0123456789 and hf_canary0123",
    "postgres://app:canary@db:5432/x is away",
    "GET /x?api_key=canary&limit=3",
    'body {"password": "canary word", "a": 1}',
    "body {'token': 'canary word'}",
    '"{\\"secret\\": \\"canary\\"}"',
    "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END",
    "eyJcanary00.canary11.canary22",
    "connection <WebRequest at 0x7f method=GET uri=/search?q=canary clientproto=HTTP/1.1>",
]


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.parametrize("value", SECRETS, ids=range(len(SECRETS)))
def test_secrets_are_redacted_at_any_depth(value: object) -> None:
    for written in (line("x", it=value), line("%s", value), line("x", a=[{"b": (str(value),)}])):
        assert "canary" not in written
        assert "[redacted]" in written


@pytest.mark.fault("Forged log lines, and secrets")
def test_secrets_of_this_installation_are_redacted_everywhere(
    configure: Callable[..., None],
) -> None:
    configure(
        openai_api_key="a plain+word",
        mcp_token="other-word",
        database_url="postgres://u:in-the-url@h/d",
    )
    text = f"a plain+word a%20plain%2Bword other-word in-the-url {settings.SECRET_KEY}"
    assert json.loads(line(text))["message"] == " ".join(["[redacted]"] * 5)
    configure(openai_api_key="", mcp_token="", database_url="")
    assert "other-word" in line("other-word")


def test_text_that_only_resembles_a_secret_is_kept() -> None:
    facts = {"inputTokens": 12, "tokens": [1, 2], "limit": 5, "model": "m", "none": None}
    assert clean(facts) == facts
    for text in ("The tokens: 5 in, 6 out", "risk-free", "http://host:5010/path@x", "a@b.example"):
        assert clean(text) == text


def test_an_entry_is_always_json_of_bounded_size() -> None:
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    entry = json.loads(line("x" * 100_000, nan=float("nan"), deep=deep, it={1, 2}, e=ValueError()))
    assert len(entry["message"]) < MAX_TEXT + 100
    assert entry["message"].endswith("(100,000 characters)")
    assert entry["context"]["nan"] == "nan"


def test_a_traceback_keeps_its_lines_and_loses_its_secrets() -> None:
    try:
        raise ValueError("token=canary\x1b[31m")
    except ValueError:
        failed = record("broke")

        failed.exc_info = sys.exc_info()
    traceback = entry_of(failed)["context"]["traceback"]
    assert "\n" in traceback and "canary" not in traceback and "\x1b" not in traceback
    assert "ValueError" in ConsoleFormatter().format(failed)


@pytest.mark.django_db
def test_every_response_has_a_request_id_and_uses_a_valid_one_of_the_caller(client: Client) -> None:
    assert client.get("/version", headers={"x-request-id": "abc-1"})["X-Request-Id"] == "abc-1"
    own = client.get("/version", headers={"x-request-id": "bad id\x01"})["X-Request-Id"]
    assert len(own) == 32
