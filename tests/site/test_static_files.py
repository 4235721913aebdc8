"""Static files: found in every app, typed, cached, and never a door to anything else."""

import pytest
from channels.testing import HttpCommunicator

from apps.core.http.ports import nothing_here
from apps.core.http.static_files import WithStaticFiles

application = WithStaticFiles(nothing_here)


async def fetch(path: str, method: str = "GET", **headers: str) -> dict[str, object]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    answer = await HttpCommunicator(
        application, method, path, headers=[(b"host", b"localhost"), *pairs]
    ).get_response()
    return answer | {"headers": {k.decode(): v.decode() for k, v in answer["headers"]}}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/static/css/tokens.css", "text/css"),
        ("/static/js/app.js", "text/javascript"),
        ("/static/django_htmx/htmx-2.min.js", "text/javascript"),
        ("/static/admin/css/base.css", "text/css"),
    ],
)
async def test_files_of_the_project_and_of_apps_are_served_with_their_type(
    path: str, kind: str
) -> None:
    answer = await fetch(path)
    headers = answer["headers"]
    assert isinstance(headers, dict)
    assert answer["status"] == 200 and answer["body"]
    assert headers["content-type"].startswith(kind)
    assert headers["x-content-type-options"] == "nosniff"


async def test_an_unchanged_file_is_not_sent_again() -> None:
    first = await fetch("/static/css/tokens.css")
    assert isinstance(first["headers"], dict)
    cached = await fetch(
        "/static/css/tokens.css", if_modified_since=first["headers"]["last-modified"]
    )
    assert (cached["status"], cached["body"]) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/static/nothing.css", "/static/../manage.py", "/static/%2e%2e/manage.py", "/static/"]
)
async def test_everything_else_is_passed_on(path: str) -> None:
    assert (await fetch(path))["status"] == 404
