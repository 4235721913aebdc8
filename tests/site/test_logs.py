"""Log lines: one entry each, redacted, and impossible to forge."""

import json
import logging

import pytest
from django.test import Client

from apps.logs.formatting import JsonFormatter


def line(message: str, **context: object) -> str:
    record = logging.makeLogRecord(
        {"name": "codeinfo.x", "levelname": "WARNING", "msg": message, "context": context}
    )
    return JsonFormatter().format(record)


def test_an_entry_has_the_shape_of_the_contract() -> None:
    entry = json.loads(line("hello", runId="r"))
    assert (entry["level"], entry["message"], entry["source"]) == ("warn", "hello", "server")
    assert entry["timestamp"].endswith("Z") and entry["context"] == {"runId": "r"}


@pytest.mark.parametrize("evil", ["a\nlevel: info", "\x1b[31mred", "\u202egnp.exe", "\r\n", "\x00"])
def test_no_message_can_forge_or_hide_a_line(evil: str) -> None:
    written = line(evil, name=evil)
    assert written.isascii() and written.isprintable()
    assert json.loads(written)["message"] == evil


def test_secrets_are_redacted_however_deep() -> None:
    written = line(
        "x", headers={"Authorization": "canary"}, list=[{"api_key": "canary"}], token="canary"
    )
    assert "canary" not in written and written.count("[redacted]") == 3


@pytest.mark.django_db
def test_every_answer_carries_a_request_id_and_takes_over_a_good_one(client: Client) -> None:
    assert client.get("/version", headers={"x-request-id": "abc-1"})["X-Request-Id"] == "abc-1"
    own = client.get("/version", headers={"x-request-id": "bad id\x01"})["X-Request-Id"]
    assert len(own) == 32
