"""The pane beside an answer: GET /ui/retrieval/source."""

import hashlib
import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from apps.browse.source import MARGIN, MAX_LINES
from apps.index.models import SourceFile
from tests.retrieval.conftest import Shelf

pytestmark = pytest.mark.django_db

URL = "/ui/retrieval/source"


@pytest.fixture
def ingested(shelf: Shelf, folder: Path):
    """ingested("a.py", "text") writes a file below the root "repo" and its live row."""
    shelf.root(path=str(folder))

    def write(path: str, text: str | bytes, *, reason: str = "") -> Path:
        data = text.encode() if isinstance(text, str) else text
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        row = shelf.file(path)
        row.sha256, row.skip_reason = hashlib.sha256(data).hexdigest(), reason
        row.save()
        return target

    return write


def part(client: Client, **params: object):
    """What htmx gets."""
    return client.get(URL, {"repo": "repo", **params}, headers={"HX-Request": "true"})


def lines(html: str) -> dict[int, str]:
    """Line number → text, as drawn."""
    drawn = re.findall(
        r'<span class="line[^"]*"><a class="ln" name="L(\d+)"[^>]*>\1</a>(.*?)\n</span>',
        html,
        re.S,
    )
    return {int(number): unescape(re.sub(r"<[^>]*>", "", text)) for number, text in drawn}


def cited(html: str) -> list[int]:
    return [int(n) for n in re.findall(r'class="line is-cited"><a class="ln" name="L(\d+)"', html)]


@pytest.mark.door
def test_cited_lines_are_highlighted(client: Client, ingested) -> None:
    ingested("lib/a.py", "def one():\n    return '<b>'\n\nx = 1\n")
    html = part(client, path="lib/a.py", start=2, end=3).content.decode()
    assert lines(html) == {1: "def one():", 2: "    return '<b>'", 3: "", 4: "x = 1"}
    assert cited(html) == [2, 3]
    assert '<span class="k">def</span>' in html
    assert "Lines 2–3" in html
    assert "4 lines" in html
    assert 'data-copy="repo/lib/a.py:2-3"' in html
    assert "<b>" not in html


def test_lines_are_counted_as_the_chunker_counts_them(client: Client, ingested) -> None:
    ingested("a.txt", b"\xef\xbb\xbfone\r\ntwo\x0cstill two\rand still\r\n\xff\r\n")
    html = part(client, path="a.txt", start=3).content.decode()
    assert list(lines(html)) == [1, 2, 3]
    assert lines(html)[1] == "one"
    assert cited(html) == [3]


@pytest.mark.door
def test_the_viewer_shows_whether_the_file_has_changed(client: Client, ingested) -> None:
    target = ingested("a.py", "x = 1\n")
    assert "Same as on disk" in part(client, path="a.py").content.decode()
    target.write_text("y = 2\n")
    html = part(client, path="a.py").content.decode()
    assert "Changed since ingest" in html
    assert lines(html) == {1: "y = 2"}


@pytest.mark.door
def test_without_lines_nothing_is_cited(client: Client, ingested) -> None:
    ingested("a.py", "x = 1\n")
    html = part(client, path="a.py").content.decode()
    assert cited(html) == []
    assert 'data-copy="repo/a.py"' in html


@pytest.mark.door
def test_a_long_file_is_shown_around_the_cited_lines(client: Client, ingested) -> None:
    total = MAX_LINES * 3
    ingested("long.py", "".join(f"x{i} = {i}\n" for i in range(1, total + 1)))
    html = part(client, path="long.py", start=3000, end=3002).content.decode()
    assert list(lines(html)) == list(range(3000 - MARGIN, 3002 + MARGIN + 1))
    assert lines(html)[3000] == "x3000 = 3000"
    assert cited(html) == [3000, 3001, 3002]
    assert f"{3000 - MARGIN - 1:,} lines above" in html
    assert f"{total - 3002 - MARGIN:,} lines below" in html


def test_the_windows_of_a_long_file_cover_it_whole(client: Client, ingested) -> None:
    total = MAX_LINES * 2
    ingested("long.txt", "".join(f"{i}\n" for i in range(1, total + 1)))
    shown_lines: set[int] = set()
    url: str | None = f"{URL}?repo=repo&path=long.txt"
    while url:
        html = client.get(url, headers={"HX-Request": "true"}).content.decode()
        assert not shown_lines.issuperset(lines(html)), "a window must show something new"
        shown_lines |= set(lines(html))
        below = re.search(r'<a class="gap" [^>]*hx-get="([^"]+)"[^>]*>[\d,]+ lines? below', html)
        url = unescape(below[1]) if below else None
    assert shown_lines == set(range(1, total + 1))
    above = re.search(r'<a class="gap" [^>]*hx-get="([^"]+)"[^>]*>([\d,]+) lines above', html)
    assert above
    before = client.get(unescape(above[1]), headers={"HX-Request": "true"}).content.decode()
    assert max(lines(before)) == min(lines(html))


def test_citing_a_whole_long_file_shows_no_more_than_a_window(client: Client, ingested) -> None:
    ingested("long.txt", "x\n" * MAX_LINES * 3)
    html = part(client, path="long.txt", start=1, end=MAX_LINES * 3).content.decode()
    assert len(lines(html)) <= MAX_LINES


@pytest.mark.door
def test_lines_beyond_the_end_are_ignored(client: Client, ingested) -> None:
    ingested("a.py", "x = 1\n")
    html = part(client, path="a.py", start=10**30, end=10**31).content.decode()
    assert lines(html) == {1: "x = 1"}
    assert cited(html) == []


@pytest.mark.door
def test_a_pane_says_only_on_the_page_of_a_file_that_no_line_matches(
    client: Client, ingested
) -> None:
    ingested("a.py", "x = 1\n")
    assert "No line matches" not in part(client, path="a.py", find="zebra").content.decode()
    assert "No line matches" in client.get("/code/repo/a.py?find=zebra").content.decode()


@pytest.mark.door
def test_an_empty_file_has_no_lines(client: Client, ingested) -> None:
    ingested("empty.py", "")
    response = part(client, path="empty.py", start=1, end=2)
    assert response.status_code == 200
    assert "0 lines" in response.content.decode()


@pytest.mark.door
def test_a_browser_is_sent_to_the_page_of_the_file(client: Client, ingested) -> None:
    ingested("a.py", "x = 1\ny = 2\n")
    query = {"repo": "repo", "path": "a.py", "start": "1", "end": "2", "find": "x"}
    page = client.get(URL, query)
    assert (page.status_code, page["Location"]) == (302, "/code/repo/a.py?lines=1-2&find=x")
    assert "HX-Request" in page["Vary"]
    page = client.get(URL, query, follow=True)
    assert page.content.startswith(b"<!doctype html>")
    assert b'id="source-body"' in page.content
    wrong = client.get(URL, {"repo": "repo"})
    assert wrong.status_code == 400
    assert wrong.content.startswith(b"<!doctype html>")
    assert part(client, path="a.py").content.startswith(b'<div class="viewer__body"')


# --- refusals -------------------------------------------------------------------------------------


def refused(response) -> tuple[int, str]:
    html = response.content.decode()
    assert 'role="alert"' in html
    assert "line" not in re.findall(r'class="(\w+)"', html)
    code = re.search(r'<p class="muted mono">(\w+)</p>', html)
    assert code
    return response.status_code, code[1]


def test_an_unknown_repository_is_404(client: Client, ingested) -> None:
    ingested("a.py", "x")
    assert refused(part(client, repo="other", path="a.py")) == (404, "REPO_NOT_FOUND")


@pytest.mark.parametrize(
    "path",
    ["b.py", "../a.py", "/etc/passwd", "lib/../a.py", "..%2fa.py", "a.py/", "./a.py", "A.PY"],
)
def test_only_a_path_that_was_ingested_can_be_opened(
    client: Client, ingested, folder: Path, path: str
) -> None:
    ingested("a.py", "x")
    (folder / "b.py").write_text("not ingested")
    assert refused(part(client, path=path)) == (404, "FILE_NOT_FOUND")


def test_a_skipped_file_cannot_be_opened(client: Client, ingested) -> None:
    ingested(".env", "KEY=canary", reason="Holds secrets")
    assert refused(part(client, path=".env")) == (404, "FILE_NOT_FOUND")


def test_a_file_that_is_no_longer_live_cannot_be_opened(client: Client, ingested) -> None:
    ingested("a.py", "x")
    SourceFile.objects.update(since=0, until=1)
    assert refused(part(client, path="a.py")) == (404, "FILE_NOT_FOUND")


def test_a_deleted_file_is_404(client: Client, ingested) -> None:
    ingested("a.py", "x").unlink()
    assert refused(part(client, path="a.py")) == (404, "NOT_FOUND")


def test_a_file_that_became_a_link_is_not_followed(client: Client, ingested, tmp_path) -> None:
    target = ingested("a.py", "x")
    target.unlink()
    target.symlink_to("/etc/passwd")
    assert refused(part(client, path="a.py")) == (400, "NOT_READABLE")


def test_a_folder_that_became_a_link_is_not_followed(client: Client, ingested, folder) -> None:
    ingested("lib/a.py", "x")
    (folder / "lib").rename(folder / "elsewhere")
    (folder / "lib").symlink_to(folder / "elsewhere")
    assert refused(part(client, path="lib/a.py")) == (400, "NOT_READABLE")


def test_a_file_that_outgrew_the_cap_is_not_read(client: Client, ingested, configure) -> None:
    ingested("a.py", "x" * 100)
    configure(ingest_max_file_bytes=99)
    assert refused(part(client, path="a.py")) == (400, "TOO_LARGE")


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": ""},
        {"repo": "", "path": "a.py"},
        {"path": "a.py\0"},
        {"path": "a.py", "start": "one"},
        {"path": "a.py", "start": "0"},
        {"path": "a.py", "end": "-1"},
        {"path": "a.py", "start": "5", "end": "4"},
        {"path": "a.py", "around": "9" * 5000},
    ],
)
def test_wrong_parameters_are_400(client: Client, ingested, wrong: dict) -> None:
    ingested("a.py", "x")
    assert refused(part(client, **wrong)) == (400, "VALIDATION_FAILED")


@pytest.mark.door
def test_file_names_are_escaped(client: Client, ingested) -> None:
    name = '<img src=x onerror="alert(1)">.py'
    ingested(name, "x")
    page = client.get(URL, {"repo": "repo", "path": name}, follow=True)
    for response in (part(client, path=name), page):
        assert response.status_code == 200
        assert b"<img" not in response.content


def test_only_reading_is_allowed(client: Client, ingested) -> None:
    assert client.post(URL, {"repo": "repo", "path": "a.py"}).status_code == 405
