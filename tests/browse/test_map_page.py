"""The map of a repository: tiles of its folders, and a graph of its imports."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from apps.browse.map_page import MAX_CITED, MAX_TILES, MAX_UNITS, units
from tests.browse.pages import get, link, text
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES = {
    "app/main.py": "from app.core import lamp\nfrom app.web import page\n" + "x = 1\n" * 50,
    "app/core/lamp.py": "LAMP = 1\n" * 40,
    "app/web/page.py": "from app.core import lamp\n" + "y = 1\n" * 20,
    "app/web/deep/alone/one.py": "from app.web import page\n",
    "tests/test_lamp.py": "from app.core import lamp\n" * 3,
    "notes.md": "# Notes\n" * 400,
}
HOSTILE = '<script>"x"</script>'


@pytest.fixture
def harbour(folder: Path, db: None) -> Path:
    ingest(write_files(folder, FILES), "harbour")
    return folder


def tiles(html: str) -> dict[str, str]:
    """Title of each tile → its address."""
    found = re.findall(r'<a class="tile[^"]*" href="([^"]*)" aria-label="([^"]*)"', html)
    return {unescape(title): unescape(url) for url, title in found}


def arrows(html: str) -> list[tuple[str, str]]:
    found = re.findall(r"<bdi>([^<]*)</bdi></a> imports <a[^>]*><bdi>([^<]*)</bdi>", html)
    return [(unescape(start), unescape(end)) for start, end in found]


def test_folders_are_tiles_that_lead_to_their_maps_and_files_to_their_code(
    client: Client, harbour: Path
) -> None:
    html = get(client, link(get(client, "/code/harbour"), "Map"))
    shown = tiles(html)
    assert shown["app: 4 files, python"] == "/code/harbour/app?view=map"
    assert shown["app/main.py: python"] == "/code/harbour/app/main.py"
    assert not any("notes" in title for title in shown)  # no code
    assert "style=" not in html.partition("<main")[2]
    inner = get(client, shown["app: 4 files, python"])
    assert 'href="/code/harbour/app">Code</a>' in inner
    assert "app/core: 1 file, python" in tiles(inner)
    assert 'href="/code/harbour?view=map"' in inner  # zoom out
    assert "languages__bar" in html and "languages__bar" not in inner  # it is of all files
    assert "app/" in text(html) and "Size" in text(html)  # the list


def test_imports_are_drawn_between_files_and_the_list_says_the_same(
    client: Client, harbour: Path
) -> None:
    page = get(client, "/code/harbour?view=map")
    assert 'hx-get="/ui/code/imports?repo=harbour&amp;path="' in page
    html = get(client, "/ui/code/imports?repo=harbour&path=")
    assert set(arrows(html)) == {
        ("app/main.py", "app/core/lamp.py"),
        ("app/main.py", "app/web/page.py"),
        ("app/web/page.py", "app/core/lamp.py"),
        ("app/web/deep/alone/one.py", "app/web/page.py"),
    }
    assert html.count('class="graph__call"') == 4
    assert link(html, "<bdi>app/main.py</bdi>") == "/code/harbour/app/main.py"
    inner = get(client, "/ui/code/imports?repo=harbour&path=app/web")
    assert arrows(inner) == [("deep/alone/one.py", "page.py")]
    none = get(client, "/ui/code/imports?repo=harbour&path=app/core")
    assert "No imports between files are known here" in none
    assert "REPO_NOT_FOUND" in get(client, "/ui/code/imports?repo=gone", 404)


def test_what_an_answer_cites_is_marked_and_stays_marked(client: Client, harbour: Path) -> None:
    url = "/code/harbour?view=map&cited=app/web/page.py:2-9&cited=app/core/lamp.py&cited=../x:1"
    html = get(client, url)
    shown = tiles(html)
    folder = shown["app: 4 files, python, cited 2 times"]
    assert folder.endswith(
        "cited=app%2Fweb%2Fpage.py%3A2-9&cited=app%2Fcore%2Flamp.py&cited=..%2Fx%3A1"
    )
    assert link(html, "<bdi>app/web/page.py:2–9</bdi>") == "/code/harbour/app/web/page.py?lines=2-9"
    inner = tiles(get(client, folder))
    assert (
        inner["app/web/page.py: python, cited 1 time"] == "/code/harbour/app/web/page.py?lines=2-9"
    )
    imports = unescape(re.findall(r'hx-get="(/ui/code/imports[^"]*)"', html)[0])
    assert get(client, imports).count('class="graph__node is-cited"') == 2
    many = "&".join(["cited=a.py"] * 900)
    assert get(client, f"/code/harbour?view=map&{many}").count("<bdi>a.py</bdi>") == MAX_CITED


def test_many_folders_and_hostile_names_make_a_small_page(
    client: Client, folder: Path, db: None
) -> None:
    files = {f"d{n}/a.py": f"x = {n}\n" for n in range(300)}
    ingest(write_files(folder, {**files, f"{HOSTILE}/a.py": "x = 1\n" * 9}), "wide")
    html = get(client, "/code/wide?view=map")
    assert "<script>&quot;x" not in html and "&lt;script&gt;" in html
    assert len(tiles(html)) < 3 * MAX_TILES and "261 others" in html
    assert len(html) < 200_000


def test_the_graph_has_a_limited_number_of_folders() -> None:
    paths = [f"a/b{n}/c{m}/d.py" for n in range(200) for m in range(5)]
    paths += [f"e{n}/f.py" for n in range(MAX_UNITS - 2)] + ["top.py"]
    unit_of = units(paths, "")
    assert len(unit_of) == len(paths) and len(set(unit_of.values())) <= MAX_UNITS
    assert unit_of["a/b1/c1/d.py"] == "a/" and unit_of["top.py"] == "/"
    few = units(["a/b.py", "a/c.py", "d.py"], "")
    assert few == {path: path for path in few}
