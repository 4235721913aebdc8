"""The folders beneath which may be ingested, and how the codeinfo command adds one."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from apps.core import config as configuration
from apps.core.config import config
from apps.core.security.authentication import server_token
from apps.embedding.static import MODEL_ID
from apps.ingest import bases
from tests.support.ingested import write_files

TOKEN = {"HTTP_AUTHORIZATION": f"Bearer {server_token()}"}


@pytest.fixture
def home(folder: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, which is the only default base, and other folders beside it."""
    write_files(folder, {"home/a.py": "a = 1\n", "src/project/b.py": "b = 1\n", "data/x": ""})
    monkeypatch.setattr(configuration, "IS_INSTALLED", True)
    monkeypatch.setenv("HOME", str(folder / "home"))
    configure(ingest_base=(), data_dir=folder / "data")
    return folder / "home"


def post(client: Client, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
    answer = client.post(path, json.dumps(body), content_type="application/json", **headers)
    return answer.status_code, answer.json()


def add(client: Client, path: str) -> tuple[int, dict[str, Any]]:
    return post(client, "/ingest/bases", {"path": path}, **TOKEN)


def test_an_added_folder_may_be_ingested_from_then_on(client: Client, home: Path) -> None:
    project = home.parent / "src" / "project"
    assert client.get("/ingest/dirs", {"path": str(project)}).json()["code"] == "OUTSIDE_BASE"
    status, body = add(client, str(project))
    assert (status, body) == (
        200,
        {
            "status": "ok",
            "path": str(project),
            "bases": [str(home), str(project)],
            "added": [str(project)],
            "fixed": False,
        },
    )
    assert client.get("/ingest/dirs", {"path": str(project)}).status_code == 200
    assert client.get("/ingest/dirs", {"path": str(project.parent)}).status_code == 400
    file = config().data_dir / bases.NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"bases": [str(project)]}
    assert client.get("/ingest/bases").json()["added"] == [str(project)]


def test_a_folder_inside_is_not_added_again(client: Client, home: Path) -> None:
    (home / "below").mkdir()
    assert add(client, str(home / "below"))[1]["added"] == []
    assert not (config().data_dir / bases.NAME).exists()


def test_a_link_is_added_as_the_folder_that_it_leads_to(client: Client, home: Path) -> None:
    link, real = home / "link", home.parent / "src"
    link.symlink_to(real)
    assert add(client, str(link))[1]["added"] == [str(real)]


def test_an_added_folder_that_was_replaced_by_a_link_does_not_count(
    client: Client, home: Path
) -> None:
    src = home.parent / "src"
    add(client, str(src))
    src.rename(home.parent / "elsewhere")
    src.symlink_to("/etc")
    body = client.get("/ingest/bases").json()
    assert (body["bases"], body["added"]) == ([str(home)], [])
    assert client.get("/ingest/dirs", {"path": "/etc"}).json()["code"] == "OUTSIDE_BASE"


def test_a_folder_that_was_added_can_be_taken_back(client: Client, home: Path) -> None:
    src = str(home.parent / "src")
    add(client, src)
    status, body = post(client, "/ingest/bases/remove", {"path": src}, **TOKEN)
    assert (status, body["bases"], body["added"]) == (200, [str(home)], [])
    status, body = post(client, "/ingest/bases/remove", {"path": src}, **TOKEN)
    assert (status, body["code"]) == (404, "NOT_FOUND")
    status, body = post(client, "/ingest/bases/remove", {"path": str(home)}, **TOKEN)
    assert (status, body["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("route", ["/ingest/bases", "/ingest/bases/remove"])
def test_only_the_token_of_the_server_file_changes_them(
    client: Client, home: Path, configure: Callable[..., None], route: str
) -> None:
    body = {"path": str(home.parent / "src")}
    assert post(client, route, body)[1]["code"] == "SERVER_TOKEN_ONLY"
    # A token that other machines were given does not do either.
    configure(api_token="a-token-for-agents")
    status, answer = post(client, route, body, HTTP_AUTHORIZATION="Bearer a-token-for-agents")
    assert (status, answer["code"]) == (403, "SERVER_TOKEN_ONLY")
    # A page of another site is refused before, whatever it sends.
    status, answer = post(client, route, body, HTTP_ORIGIN="http://evil.example", **TOKEN)
    assert status == 403
    assert client.get("/ingest/bases", **TOKEN).json()["added"] == []


def test_the_variable_wins_and_the_answer_says_so(
    client: Client, home: Path, configure: Callable[..., None]
) -> None:
    src = home.parent / "src"
    add(client, str(src))
    configure(ingest_base=(home,))
    body = client.get("/ingest/bases").json()
    assert body == {"bases": [str(home)], "added": [], "fixed": True}
    for route in ("/ingest/bases", "/ingest/bases/remove"):
        status, body = post(client, route, {"path": str(src)}, **TOKEN)
        assert (status, body["code"]) == (409, "BASES_FIXED")
        assert f"CODEINFO_INGEST_BASE is set: add {src}" in body["message"]


def refused(home: Path) -> list[tuple[object, int, str]]:
    return [
        ("src", 400, "VALIDATION"),
        ("", 400, "VALIDATION"),
        (7, 400, "VALIDATION"),
        (f"{home}\0/x", 400, "VALIDATION"),
        ("/" + "x" * 5_000, 400, "VALIDATION"),
        (str(home.parent / "nowhere"), 404, "NOT_FOUND"),
        (str(home.parent / "src" / "project" / "b.py"), 400, "NOT_DIRECTORY"),
        (str(home.parent / "data"), 400, "OWN_DATA"),
        ("/", 400, "TOO_WIDE"),
        ("//", 400, "TOO_WIDE"),
        (f"{home}/../../../../../../..", 400, "TOO_WIDE"),
    ]


def test_what_cannot_be_a_base_is_refused(client: Client, home: Path) -> None:
    for path, status, code in refused(home):
        answer = post(client, "/ingest/bases", {"path": path}, **TOKEN)
        assert (answer[0], answer[1]["code"]) == (status, code), path
    assert client.get("/ingest/bases").json()["added"] == []


def test_a_folder_that_cannot_be_read_is_refused(
    client: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    assert add(client, str(home.parent / "src"))[1]["code"] == "NOT_READABLE"


def test_there_are_at_most_a_hundred(
    client: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "MOST_BASES", 1)
    assert add(client, str(home.parent / "src"))[0] == 200
    (home.parent / "more").mkdir()
    status, body = add(client, str(home.parent / "more"))
    assert (status, body["code"]) == (409, "TOO_MANY_BASES")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"bases": 3}',
        '{"bases": {"a": 1}}',
        '{"bases": [7, "src", "/no\\u0000"]}',
        "[" * 9_999,
    ],
)
def test_a_malformed_file_adds_nothing(client: Client, home: Path, content: str) -> None:
    (config().data_dir / bases.NAME).write_text(content)
    assert client.get("/ingest/bases").json()["added"] == []
    assert add(client, str(home.parent / "src"))[1]["added"] == [str(home.parent / "src")]


def test_a_link_in_the_place_of_the_file_is_not_followed(client: Client, home: Path) -> None:
    other = home / "other.json"
    other.write_text(json.dumps({"bases": ["/etc"]}))
    (config().data_dir / bases.NAME).symlink_to(other)
    assert client.get("/ingest/bases").json()["added"] == []
    add(client, str(home.parent / "src"))
    assert json.loads(other.read_text()) == {"bases": ["/etc"]}


def test_a_data_folder_that_cannot_be_written_is_told(
    client: Client, home: Path, configure: Callable[..., None]
) -> None:
    configure(data_dir=home.parent / "data" / "x")
    status, body = add(client, str(home.parent / "src"))
    assert (status, body["code"]) == (503, "UNAVAILABLE")
    assert "cannot be written" in body["message"]


HERE = {"HTTP_HOST": "127.0.0.1:5010", "REMOTE_ADDR": "127.0.0.1", "HTTP_HX_REQUEST": "true"}
OFFER = "Allow this folder"


def start(client: Client, path: object, **more: str) -> str:
    """The form after an attempt to ingest a folder with it."""
    form = {"path": str(path), "name": "x", "model": MODEL_ID}
    return client.post("/ui/ingest/start", form, **HERE | more).content.decode()


def allow(client: Client, path: object, **more: str) -> HttpResponse:
    form = {"path": str(path), "name": "x", "model": MODEL_ID, "allow": str(path)}
    return cast(HttpResponse, client.post("/ui/ingest/allow", form, **HERE | more))


@pytest.mark.door
@pytest.mark.django_db
def test_the_page_shows_a_folder_and_allows_it(client: Client, home: Path) -> None:
    project, link = home.parent / "src" / "project", home / "link"
    link.symlink_to(project)
    html = start(client, link)
    assert OFFER in html and f'value="{project}"' in html
    answer = allow(client, project)
    assert (answer.status_code, bases.added()) == (200, (project,))
    html = answer.content.decode()
    assert OFFER not in html and f'value="{project}"' in html
    assert client.get("/ingest/dirs", {"path": str(project)}).status_code == 200


@pytest.mark.door
@pytest.mark.django_db
@pytest.mark.parametrize("wide", ["/", "home", ".", "data", "data/x", "src/nothing"])
def test_the_page_does_not_offer_a_folder_that_is_wide_or_ours(
    client: Client, home: Path, wide: str, configure: Callable[..., None]
) -> None:
    folder = home.parent / wide
    configure(ingest_base=(), data_dir=home.parent / "data", codex_home=home / ".codex")
    if wide == "home":  # as where codeinfo's source is the only default base
        bases.add(str(home.parent / "src"))
    assert OFFER not in start(client, folder)
    before = bases.added()
    assert allow(client, folder).status_code == 422
    assert bases.added() == before


@pytest.mark.door
@pytest.mark.django_db
def test_the_page_does_not_offer_what_has_a_base_in_it(client: Client, home: Path) -> None:
    bases.add(str(home.parent / "src" / "project"))
    assert OFFER not in start(client, home.parent / "src")
    assert "holds more than a project" in allow(client, home.parent / "src").content.decode()


@pytest.mark.door
@pytest.mark.django_db
def test_a_folder_that_became_a_link_after_it_was_shown_is_not_allowed(
    client: Client, home: Path
) -> None:
    shown = home.parent / "shown"
    shown.symlink_to(home.parent / "src")
    assert allow(client, shown).status_code == 422
    assert bases.added() == ()


@pytest.mark.door
@pytest.mark.django_db
def test_only_staff_with_a_browser_on_this_machine_allows_folders(
    client: Client, home: Path, configure: Callable[..., None]
) -> None:
    project = home.parent / "src" / "project"
    for more in (
        {"HTTP_HOST": "localhost", "REMOTE_ADDR": "192.0.2.1"},
        {"HTTP_HOST": "testserver"},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.1"},
    ):
        assert OFFER not in start(client, project, **more)
        assert allow(client, project, **more).status_code == 403
    configure(loopback_users="any")
    assert allow(client, project).status_code == 403
    configure(loopback_users="own", ingest_base=(home,))
    assert OFFER not in start(client, project)
    assert allow(client, project).status_code == 422
    configure(ingest_base=(), require_login=True)
    client.force_login(User.objects.create_user("ada"))
    assert allow(client, project).status_code == 403
    assert bases.added() == ()
