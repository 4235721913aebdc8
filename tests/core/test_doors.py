"""Fault rows 15 and 17: cross-origin posts, forms from elsewhere, rebound names, big bodies."""

from collections.abc import Callable
from typing import Any

import pytest
from channels.testing import HttpCommunicator
from django.test import Client

from codeinfo.asgi import application
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.django_db

BODILESS = [
    "/ingest/cancel/00000000-0000-4000-8000-000000000000",
    "/ingest/reembed/%2Ftmp%2Frepo",
    "/ingest/remove/%2Ftmp%2Frepo",
    "/conversations/c1/archive",
    "/conversations/c1/restore",
    "/conversations/c1/cancel",
]
WITH_BODY = ["/logs", "/ingest/start", "/tools/vector-search", "/chat", "/conversations", *BODILESS]
WITH_BODY += ["/agents/none/run", "/agents/none/commands/run"]
GETS = ["/health", "/ingest/roots", "/tools/ingested-repos", "/conversations", "/chat/providers"]
GETS += ["/agents", "/agents/code_tour/commands"]


@pytest.fixture
def browser() -> Client:
    """A client that enforces CSRF as a browser would meet it."""
    return Client(enforce_csrf_checks=True)


@pytest.mark.fault("A page of another site")
@pytest.mark.parametrize("path", WITH_BODY)
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://testserver.evil.example", "http://[::1"]
)
def test_a_post_from_another_origin_is_refused(browser: Client, path: str, origin: str) -> None:
    answer = browser.post(path, headers={"origin": origin})
    assert (answer.status_code, answer["content-type"]) == (403, "application/json")
    assert "Access-Control-Allow-Origin" not in answer


@pytest.mark.fault("A page of another site")
@pytest.mark.parametrize("path", BODILESS)
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_cross_site_form_on_a_bodiless_post_is_refused(
    browser: Client, path: str, kind: str
) -> None:
    answer = browser.post(path, "a=b", content_type=kind, headers={"origin": "http://evil.example"})
    assert answer.status_code == 403


@pytest.mark.fault("A page of another site", "Malformed requests")
@pytest.mark.parametrize("path", WITH_BODY)
@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"]
)
def test_a_body_that_is_not_json_is_refused(browser: Client, path: str, kind: str) -> None:
    answer = browser.post(path, '{"a": 1}', content_type=kind)
    assert (answer.status_code, answer["content-type"]) == (415, "application/json")


# Some verbs write from a thread of their own, which must be able to.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", BODILESS)
def test_a_bodiless_post_of_our_own_origin_reaches_its_verb(browser: Client, path: str) -> None:
    answer = browser.generic("POST", path, headers={"origin": "http://testserver"})
    assert (answer.status_code, answer["content-type"]) == (404, "application/json")


@pytest.mark.fault("A page of another site")
@pytest.mark.parametrize("path", ["/", "/chat", "/ingest", "/search", *GETS])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", ""])
def test_a_rebound_name_is_refused_everywhere(browser: Client, path: str, host: str) -> None:
    answer = browser.get(path, headers={"host": host}, SERVER_NAME=host)
    assert answer.status_code == 400


@pytest.mark.door
@pytest.mark.parametrize("host", ["127.0.0.1:5010", "localhost:5010", "[::1]:5010"])
def test_loopback_names_are_served(browser: Client, host: str) -> None:
    assert browser.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.fault("Malformed requests")
def test_chat_has_a_smaller_cap_and_its_own_words(browser: Client) -> None:
    answer = browser.post("/chat", "x" * 40_000, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "PAYLOAD_TOO_LARGE")
    answer = browser.post(
        "/chat",
        "x" * 40_000,
        content_type="application/json",
        headers={"accept": "text/event-stream"},
    )
    assert (answer.status_code, answer.json()) == (400, {"error": "payload too large"})


def test_a_configured_origin_may_call_and_gets_cors_headers(
    browser: Client, configure: Callable[..., None]
) -> None:
    configure(allowed_origins=("https://tool.example",))
    answer = browser.get("/version", headers={"origin": "https://tool.example"})
    assert answer["Access-Control-Allow-Origin"] == "https://tool.example"
    configure(allowed_origins=("https://tool.example",), api_token="key-1")
    preflight = browser.options("/chat", headers={"origin": "https://tool.example"})
    assert (preflight.status_code, "POST" in preflight["Access-Control-Allow-Methods"]) == (
        204,
        True,
    )
    known = {"authorization": "Bearer key-1", "origin": "https://other.example"}
    assert browser.get("/version", headers=known).status_code == 403


@pytest.mark.fault("A page of another site")
def test_a_form_of_a_page_needs_its_token(browser: Client) -> None:
    answer = browser.post("/ui/ingest/start", {"path": "/tmp"})
    assert answer.status_code == 403


PAGE_HEADERS = ("Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options")
PAGE_HEADERS += ("Referrer-Policy", "Cross-Origin-Opener-Policy")


@pytest.mark.parametrize("path", ["/nothing", "/ingest/nothing", "/conversations/a/b/c"])
def test_an_unknown_address_answers_json_to_programs_and_a_page_to_people(
    browser: Client, path: str
) -> None:
    assert browser.get(path).json()["status" if path != "/conversations/a/b/c" else "error"]
    page = browser.get(path, headers={"accept": "text/html"})
    assert (page.status_code, page["content-type"]) == (404, "text/html; charset=utf-8")
    known = browser.get("/")
    for header in PAGE_HEADERS:
        assert page[header] == known[header]


@pytest.mark.parametrize(
    ("method", "path"),
    [("put", "/tools/vector-search"), ("delete", "/health"), ("get", "/ingest/start")],
)
def test_a_wrong_method_answers_json(browser: Client, method: str, path: str) -> None:
    answer = getattr(browser, method)(path)
    assert (answer.status_code, answer["content-type"]) == (405, "application/json")
    assert answer["Allow"]


IMAGE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
FRAME = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.fault("A page of another site")
@pytest.mark.parametrize("path", [*GETS, "/lmstudio/status", "/ui/lmstudio/models", "/mcp"])
@pytest.mark.parametrize("how", [IMAGE, FRAME], ids=["image", "frame"])
def test_a_page_elsewhere_cannot_have_anything_fetched(
    browser: Client, path: str, how: dict[str, str]
) -> None:
    ask = browser.post if path == "/mcp" else browser.get
    assert ask(path, headers=how).status_code == 403


@pytest.mark.fault("A page of another site")
@pytest.mark.door
@pytest.mark.parametrize("path", ["/", "/chat", "/search?q=x", "/version"])
def test_a_link_elsewhere_leads_here(browser: Client, path: str) -> None:
    assert browser.get(path, headers=LINK).status_code == 200
    assert browser.post("/ingest/start", headers=LINK).status_code == 403


def test_an_origin_that_is_configured_may_fetch_across_sites(
    browser: Client, configure: Callable[..., None]
) -> None:
    configure(allowed_origins=("https://tool.example",))
    headers = {**IMAGE, "sec-fetch-mode": "cors", "origin": "https://tool.example"}
    assert browser.get("/version", headers=headers).status_code == 200


def test_an_address_longer_than_any_page_has_is_not_looked_up(browser: Client) -> None:
    assert browser.get("/admin/" + "a/" * 8_000).status_code == 404


@pytest.mark.fault("Markup in answers and names")
def test_pages_carry_a_policy_without_unsafe_inline(browser: Client) -> None:
    policy = browser.get("/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "img-src 'self' data:" in policy and "frame-ancestors 'none'" in policy


class TestWithLoginAndTokens:
    @pytest.fixture(autouse=True)
    def guarded(self, configure: Callable[..., None]) -> None:
        configure(require_login=True, api_token="key-1")

    @pytest.mark.parametrize("path", ["/", "/chat?c=x&y=1", "/ingest", "/search"])
    def test_a_page_leads_to_the_login_and_back(self, browser: Client, path: str) -> None:
        answer = browser.get(path)
        assert answer.status_code == 302 and answer["Location"].startswith("/login?next=%2F")

    def test_a_fragment_sends_the_whole_page_to_the_login(self, browser: Client) -> None:
        answer = browser.get("/ui/ingest/roots")
        assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login")

    def test_the_login_page_opens(self, browser: Client) -> None:
        assert browser.get("/login").status_code == 200

    def test_a_user_who_is_logged_in_sees_pages(self, client: Client, admin_user: Any) -> None:
        client.force_login(admin_user)
        assert client.get("/").status_code == 200

    @pytest.mark.door
    @pytest.mark.parametrize("path", [path for path in GETS if path != "/health"])
    def test_the_api_wants_its_token(self, browser: Client, path: str) -> None:
        assert browser.get(path).status_code == 401
        assert browser.get(path, headers={"authorization": "Bearer nope"}).status_code == 401
        assert browser.get(path, headers={"authorization": "Bearer key-1"}).status_code == 200

    def test_health_is_always_open(self, browser: Client) -> None:
        assert browser.get("/health").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("mount", "path"),
    [
        ("/static", "/metrics"),
        ("/static", "/logs"),
        ("/static", "/ingest/dirs"),
        ("/admin", "/ingest/roots"),
        ("/mcp", "/agents"),
        ("/any", "/conversations"),
    ],
)
async def test_a_client_cannot_say_that_the_server_is_mounted_elsewhere(
    mount: str, path: str, configure: Callable[..., None]
) -> None:
    """Daphne takes it from a header of anybody's; the doors would go by another path than the
    routes do."""
    configure(require_login=True, api_token="key-1", mcp_token="key-2")
    door = HttpCommunicator(application, "GET", mount + path, headers=[(b"host", b"localhost")])
    door.scope["root_path"] = mount
    answer = await door.get_response(timeout=PATIENCE)
    await door.wait()
    assert answer["status"] in (302, 401, 404, 405)
