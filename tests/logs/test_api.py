"""`POST /logs` and `GET /logs` over HTTP (contract.md §9)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.logs.store import LogStore

RIGHT = {
    "level": "warn",
    "message": "clicked",
    "timestamp": "2026-01-02T03:04:05.678Z",
    "source": "client",
}


def post(client: Client, body: Any, **headers: str) -> Any:
    raw = body if isinstance(body, str) else json.dumps(body)
    return client.post("/logs", raw, content_type="application/json", headers=headers)


def items(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/logs?{query}").json()["items"]
    return found


def test_one_entry_is_accepted_and_returned(client: Client, store: LogStore) -> None:
    more = {"correlationId": "c", "userAgent": "u", "url": "/x", "route": "/x", "tags": ["t"]}
    answer = post(client, {**RIGHT, **more, "context": {"a": 1}, "other": 1}, x_request_id="r-1")
    assert (answer.status_code, answer.json()) == (202, {"status": "accepted", "sequence": 1})
    expected = {**RIGHT, **more, "context": {"a": 1}, "requestId": "r-1", "sequence": 1}
    assert client.get("/logs").json() == {"items": [expected], "lastSequence": 1, "hasMore": False}


def test_a_batch_gets_consecutive_numbers(client: Client, store: LogStore) -> None:
    answer = post(client, [{**RIGHT, "message": str(n), "requestId": "own"} for n in range(3)])
    assert answer.json()["sequence"] == 3
    assert [(e["sequence"], e["message"], e["requestId"]) for e in items(client)] == [
        (1, "0", "own"),
        (2, "1", "own"),
        (3, "2", "own"),
    ]


WRONG: list[Any] = [
    *("{", "[", "null", "5", "[]", "[[]]", '"x"', "NaN"),
    {},
    *({**RIGHT, "level": level} for level in ("loud", "WARN", 1, None, True)),
    *({**RIGHT, "source": source} for source in ("client-chat", "", None, ["client"])),
    *(
        {**RIGHT, "timestamp": time}
        for time in ("noon", 5, None, "9999-99-99", "9999-12-31T23:59:59.9999Z", {})
    ),
    *({**RIGHT, "message": message} for message in (5, None, ["x"], {})),
    *({**RIGHT, name: 5} for name in ("requestId", "url", "route", "tags", "context")),
    {**RIGHT, "tags": [5]},
    {**RIGHT, "context": []},
    *({k: v for k, v in RIGHT.items() if k != name} for name in RIGHT),
    '{"level": ' + "[" * 5000,
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_an_invalid_entry_refuses_its_batch(client: Client, store: LogStore, wrong: Any) -> None:
    for body in (wrong, [RIGHT, wrong]) if not isinstance(wrong, str) else (wrong,):
        answer = post(client, body)
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid log entry"})
    assert items(client) == []


def test_a_body_over_the_limit_is_refused(client: Client, store: LogStore) -> None:
    answer = post(client, {**RIGHT, "message": "x" * 32_768})
    assert (answer.status_code, answer.json()) == (400, {"error": "payload too large"})
    assert post(client, {**RIGHT, "message": "x" * 32_000}).status_code == 202
    assert len(items(client)) == 1


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_another_method_is_405(client: Client, method: str) -> None:
    answer = getattr(client, method)("/logs")
    assert (answer.status_code, answer.json()["code"]) == (405, "METHOD_NOT_ALLOWED")


def test_has_more_is_true_if_a_full_page_does_not_start_at_one(
    client: Client, store: LogStore
) -> None:
    post(client, [RIGHT] * 3)
    assert client.get("/logs?limit=2").json()["hasMore"] is True
    assert client.get("/logs?limit=3").json()["hasMore"] is False
    assert client.get("/logs?limit=4").json()["hasMore"] is False


def test_an_invalid_query_is_refused(client: Client, store: LogStore) -> None:
    answer = client.get("/logs?limit=" + "9" * 5_000)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_QUERY")


@pytest.mark.fault("Forged log lines, and secrets")
def test_secrets_are_redacted_before_an_entry_is_stored(client: Client, store: LogStore) -> None:
    facts = {"Password": "canary", "nested": [{"Authorization": "canary"}]}
    entry = {
        **RIGHT,
        "message": "Bearer canary-0123",
        "url": "http://u:canary@h/?token=canary",
        "tags": ["sk-canary-01234"],
        "context": facts,
    }
    assert post(client, entry).status_code == 202
    assert "canary" not in client.get("/logs").content.decode()
    assert "canary" not in store.file.path.read_text()


@pytest.mark.django_db
def test_logs_is_a_page_for_html_clients_and_json_for_others(
    client: Client, store: LogStore
) -> None:
    post(client, {**RIGHT, "message": "<b>clicked</b>"})
    page = client.get("/logs", headers={"accept": "text/html,*/*;q=0.8"})
    assert page["content-type"].startswith("text/html")
    assert "&lt;b&gt;clicked" in page.content.decode()
    plain = client.get("/logs", headers={"accept": "*/*"})
    assert plain["content-type"] == "application/json"
    assert "Accept" in page["Vary"] and "Accept" in plain["Vary"]


@pytest.mark.door
@pytest.mark.django_db
def test_requests_for_logs_and_health_leave_no_entry(client: Client, logged: LogStore) -> None:
    for path in (
        "/version",
        "/logs",
        "/logs/none",
        "/ui/logs/list",
        "/health",
        "/version?q=canary",
    ):
        client.get(path, headers={"x-request-id": "req-of-mine-1"})
    (first, second) = items(client, "text=req-of-mine-1")
    assert first["message"] == second["message"] == "request"
    assert first["context"].pop("ms") >= 0
    assert first["context"] == {"method": "GET", "path": "/version", "status": 200}
    assert "canary" not in str(second)


@pytest.mark.django_db
def test_pages_forward_only_with_their_csrf_token(
    store: LogStore, configure: Callable[..., None]
) -> None:
    configure(api_token="needed-by-programs")
    browser = Client(enforce_csrf_checks=True)
    kind = "application/json"
    body = json.dumps(RIGHT)
    assert browser.post("/logs", body, content_type=kind).status_code == 401
    assert browser.post("/ui/logs/entries", body, content_type=kind).status_code == 403
    browser.get("/login")
    token = {"x-csrftoken": browser.cookies["csrftoken"].value}
    answer = browser.post("/ui/logs/entries", body, content_type=kind, headers=token)
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    large = json.dumps({**RIGHT, "message": "x" * 40_000})
    answer = browser.post("/ui/logs/entries", large, content_type=kind, headers=token)
    assert (answer.status_code, answer.json()) == (400, {"error": "payload too large"})


@pytest.mark.django_db
def test_pages_contain_the_forwarding_settings(
    client: Client, configure: Callable[..., None]
) -> None:
    configure(client_log_bytes=5_000)
    assert '<meta name="log-forward" content="5000">' in client.get("/login").content.decode()
    configure(client_log=False)
    assert "log-forward" not in client.get("/login").content.decode()


@pytest.mark.django_db
def test_the_page_has_its_parts_and_their_texts(client: Client, store: LogStore) -> None:
    html = {"accept": "text/html"}
    empty = client.get("/logs", headers=html).content.decode()
    assert "No logs yet. Emit one with “Send sample log”." in empty
    assert "Loading logs…" in empty
    for text in ("Search text", "ERROR", "WARN", "INFO", "DEBUG", "Live", "Refresh now"):
        assert text in empty
    found = client.get("/logs?text=%3Ci%3E&level=error&live=off", headers=html).content.decode()
    assert 'value="&lt;i&gt;"' in found and "sse-connect" not in found
    assert "No line matches these filters." in found
    fragment = client.get("/ui/logs/list?text=a+b&level=error,warn&live=off&live=on")
    assert fragment["HX-Replace-Url"] == "/logs?text=a+b&level=error,warn"
    assert 'sse-connect="/ui/logs/stream?text=a+b&amp;level=error,warn&amp;sinceSequence=0"' in (
        fragment.content.decode()
    )
