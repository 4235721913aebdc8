"""The API's description: every route and method is in it, as in docs/api.md, and on a page."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.test import Client, modify_settings
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from drf_spectacular.validation import validate_schema

from apps.core.config import variable_names
from apps.core.security import menu
from apps.site.openapi.document import document
from tests.house.sources import HOME

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Pages and their fragments are HTML. They are not described.
OF_THE_MENU = {page.path[1:] for page in menu.PAGES if not page.has_api} - {"search"}
OTHER_PAGES = {"code/<anything:where>", "shared/<str:token>", "login", "logout", "api/docs"}
# A door of the project's own commands, which has no other clients.
CONTROL = {"control/<str:verb>"}
PAGES = OF_THE_MENU | OTHER_PAGES | CONTROL
# A value for each parameter of a path.
VALUES = {
    "agent": "none",
    "conversation_id": "none",
    "key": "00000000-0000-4000-8000-000000000000",
    "turn_id": "none",
    "path": "%2Fnowhere",
    "run_id": "00000000-0000-4000-8000-000000000000",
}
# What makes an address that of the API.
QUERIES = {"/search": "?box=x"}
# Codes that no answer has: those of failed turns.
OF_TURNS = {"INTERRUPTED", "PROVIDER_ERROR", "PROVIDER_TIMEOUT", "INTERNAL"}
# Pages at addresses of the API.
ALSO_PAGES = {("GET", "/chat")}


def patterns(resolver: URLResolver) -> Iterator[str]:
    """The routes of a URL table without Django's admin."""
    for each in resolver.url_patterns:
        if isinstance(each, URLPattern):
            yield str(each.pattern)
        elif str(each.pattern) != "admin/":
            yield from patterns(each)


def operations() -> list[tuple[str, str]]:
    """Method and path of each operation of the description."""
    return [
        (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method in methods
    ]


def address(path: str) -> str:
    return path.format(**VALUES) + QUERIES.get(path, "")


def test_every_route_of_the_api_is_described() -> None:
    routes = {route for route in patterns(get_resolver()) if not route.startswith("ui/")}
    described = {resolve(path.format(**VALUES)).route for _, path in operations()}
    assert described == routes - PAGES


def test_a_method_is_described_if_and_only_if_it_is_served() -> None:
    described, served = set(operations()), set()
    for path in document()["paths"]:
        for method in METHODS:
            answer = Client().generic(method, address(path))
            if answer.status_code != 405:
                served.add((method, path))
            answer.close()
    assert served == described | ALSO_PAGES


def test_the_description_is_valid_openapi_that_anyone_may_read(client: Client) -> None:
    answer = client.get("/api/schema")
    assert answer.headers["Content-Type"] == "application/json"
    description = answer.json()
    validate_schema(description)
    assert description["openapi"].startswith("3.1")
    assert set(description["components"]["securitySchemes"]) == {"token", "session"}
    names = [op["operationId"] for ops in description["paths"].values() for op in ops.values()]
    assert len(names) == len(set(names))


def test_an_error_has_the_status_and_the_body_of_the_product(client: Client) -> None:
    answer = client.post("/ingest/start", {"path": "/nowhere"}, content_type="application/json")
    described = document()["paths"]["/ingest/start"]["post"]["responses"]
    example = described[str(answer.status_code)]["content"]["application/json"]["examples"]
    assert example["VALIDATION_FAILED"]["value"].keys() == answer.json().keys()
    assert example["VALIDATION_FAILED"]["value"]["code"] == answer.json()["code"] == "VALIDATION"
    assert (
        described["409"]["content"]["application/json"]["examples"]["MODEL_LOCKED"]["value"][
            "lockedModelId"
        ]
        == ""
    )


def described_body(path: str, method: str, answer: Any) -> None:
    """Check the body of an error by the description."""
    responses = document()["paths"][path][method.lower()]["responses"]
    content = responses[str(answer.status_code)]["content"]["application/json"]
    jsonschema.validate(answer.json(), content["schema"])


def test_a_refusal_is_answered_as_it_is_described(configure: Callable[..., None]) -> None:
    configure(require_login=True)
    user = Client()
    user.force_login(User.objects.create_user("ada"))
    for method, path in operations():
        answer = Client().generic(method, address(path), content_type="application/json")
        assert answer.status_code == 401 or path == "/health", path
        if answer.status_code == 401:
            described_body(path, method, answer)
        answer = user.generic(method, address(path), content_type="application/json")
        if answer.status_code >= 400:
            described_body(path, method, answer)


def documented() -> set[tuple[str, str]]:
    """Method and path of each route that docs/api.md names, without names of parameters."""
    text = (HOME / "docs/api.md").read_text()
    return {
        (method, normal(path))
        for method, path in re.findall(r"`(GET|POST) (/[^\s`?]*)", text)
        if "…" not in path
    }


def normal(path: str) -> str:
    return re.sub(r"<\w+>|\{\w+\}", "<>", path)


def test_the_document_names_the_routes_of_the_description() -> None:
    assert documented() == {(method, normal(path)) for method, path in operations()}


def example_bodies() -> Iterator[dict[str, Any]]:
    for path, method in ((path, method) for method, path in operations()):
        for answer in document()["paths"][path][method.lower()]["responses"].values():
            content = answer.get("content", {}).get("application/json", {})
            yield from (example["value"] for example in content.get("examples", {}).values())


def test_the_document_names_the_error_codes_of_the_description() -> None:
    words = {body.get(name) for body in example_bodies() for name in ("code", "error")}
    # An operation does not describe the answer to another method.
    codes = {"METHOD_NOT_ALLOWED"}
    codes |= {word for word in words if word and re.fullmatch(r"[A-Z_]+", word)}
    text = (HOME / "docs/api.md").read_text()
    routes = re.sub(r"^\| `errorCode`.*?\n\n|^## The websocket.*", "", text, flags=re.S | re.M)
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", routes))
    assert codes - named == set()
    assert named - codes - OF_TURNS - set(variable_names()) == set()


def test_without_its_scripts_the_page_says_what_to_install(client: Client) -> None:
    with modify_settings(INSTALLED_APPS={"remove": "drf_spectacular_sidecar"}):
        text = client.get("/api/docs", headers={"accept": "text/html"}).content.decode()
    assert "-r requirements.txt</code> and start codeinfo again" in text
    assert 'href="/api/schema"' in text and "swagger" not in text


def test_the_page_is_served_under_the_strict_content_policy(client: Client) -> None:
    page = client.get("/api/docs", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "script-src 'self';" in page.headers["Content-Security-Policy"] + ";"
    text = page.content.decode()
    sources: list[Any] = re.findall(r"<(?:script|link)[^>]*(?:src|href)=\"([^\"]*)\"", text)
    assert any("swagger-ui-bundle." in source for source in sources)
    assert all(source.startswith("/static/") for source in sources)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style", text)
