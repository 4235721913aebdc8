"""Pages and their fragments are compressed, but not those that show a secret or ask for one."""

import gzip

import pytest
from django.test import Client

PAGE = {"Accept": "text/html", "Accept-Encoding": "gzip, br"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/logs", "/search", "/code/nothing", "/ui/logs/list"])
def test_pages_and_fragments_are_compressed(client: Client, path: str) -> None:
    answer = client.get(path, headers=PAGE)
    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
    assert int(answer["Content-Length"]) == len(answer.content)
    assert gzip.decompress(answer.content).rstrip().endswith(b">")
    assert not client.get(path, headers={"Accept": "text/html"}).has_header("Content-Encoding")


@pytest.mark.django_db
def test_their_length_is_not_that_of_the_text(client: Client) -> None:
    """So that it does not tell what a page shows beside what a stranger makes it show: BREACH."""
    answers = [client.get("/code/nothing", headers=PAGE) for _ in range(12)]
    names = {answer.content[10 : answer.content.index(b"\0", 10)] for answer in answers}
    assert len({len(name) for name in names}) > 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/login", "text/html"),
        ("/admin/login/", "text/html"),
        ("/logs", "application/json"),
        ("/api/schema", "application/json"),
        ("/logs/stream", "text/event-stream"),
        ("/ui/logs/stream", "text/event-stream"),
    ],
)
def test_streams_the_api_and_logins_are_not(client: Client, path: str, accept: str) -> None:
    answer = client.get(path, headers={**PAGE, "Accept": accept})
    assert answer.status_code == 200
    assert not answer.has_header("Content-Encoding")
