"""The code browser: /code, its folders and files, the tree, and the panel of a name."""

import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import pytest
from django.test import Client

from apps.browse import highlight
from apps.browse.code_page import MAX_FOUND_FILES, PAGE_SIZE
from apps.browse.highlight import highlight_lines
from apps.browse.lexer_process import Tokens, lexers
from apps.browse.lines import code_url, source_url
from apps.browse.source import BLOCK, MAX_LINE_CHARS
from apps.index.models import SourceFile
from tests.retrieval.conftest import Shelf
from tests.support.ingested import CALLER, SAMPLE, ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

HOSTILE = (
    "line\nbreak.py",
    "<img src=x onerror=alert(1)>.py",
    "\u202egnp.exe.py",
    "a?b#c&d;e%2F+ .py",
    "[id]/{x}*?.py",
    '"quoted"\'.py',
    "Ω/ñandú 💥.py",
    "x" * 200 + ".py",
)


@pytest.fixture
def lighthouse(folder: Path, db: None) -> Path:
    ingest(write_files(folder, {**SAMPLE, **CALLER}), "lighthouse")
    return folder


def get(client: Client, url: str, status: int = 200, **data: object) -> str:
    response = client.get(url, data)
    assert response.status_code == status, response.content[:2000]
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def hrefs(html: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="(/code[^"]*)"', html)]


def test_all_repositories_are_listed(client: Client, lighthouse: Path) -> None:
    html = get(client, "/code")
    assert "/code/lighthouse" in hrefs(html)
    assert "python" in text(html)


def test_without_a_repository_the_page_leads_to_ingest(client: Client) -> None:
    html = get(client, "/code")
    assert "Nothing is ingested yet" in html
    assert 'href="/ingest"' in html


def test_a_repository_and_its_folders_list_what_was_ingested(
    client: Client, lighthouse: Path
) -> None:
    html = get(client, "/code/lighthouse")
    for url in ("/code/lighthouse/src", "/code/lighthouse/README.md"):
        assert url in hrefs(html)
    assert text(get(client, "/code/lighthouse/")) == text(html)
    inner = get(client, "/code/lighthouse/src/")
    assert "/code/lighthouse/src/retry.py" in hrefs(inner)
    assert "/code/lighthouse" in hrefs(inner)


def test_a_file_has_breadcrumbs_and_stands_in_the_open_tree(
    client: Client, lighthouse: Path
) -> None:
    html = get(client, "/code/lighthouse/src/retry.py")
    assert re.search(r'<a [^>]*href="/code/lighthouse/src"[^>]*><bdi>src</bdi></a>', html)
    assert '<h1 class="truncate" title="retry.py"><bdi>retry.py</bdi></h1>' in html
    assert re.search(r'href="/code/lighthouse/src/retry.py" aria-current="page"', html)
    assert '<details class="tree__folder" open>' in html
    assert 'title="Open in VS Code (o)"' in html
    assert f'href="vscode://file{lighthouse}/src/retry.py"' in html


def test_a_permalink_marks_its_lines(client: Client, lighthouse: Path) -> None:
    html = get(client, "/code/lighthouse/src/retry.py", lines="11-12")
    cited = re.findall(r'<span class="line is-cited"><a class="ln" name="L(\d+)"', html)
    assert cited == ["11", "12"]
    assert "Lines 11–12" in html
    assert get(client, "/code/lighthouse/src/retry.py", 400, lines="12-11")
    assert get(client, "/code/lighthouse/src/retry.py", 400, lines="x")
    assert "Line 12" in get(client, "/code/lighthouse/src/retry.py", lines="12")


@pytest.mark.parametrize("setting", ["none", "cursor", "idea://open?file={path}&line={line}"])
def test_the_editor_is_a_setting(client: Client, lighthouse: Path, configure, setting: str) -> None:
    configure(editor=setting)
    html = get(client, "/code/lighthouse/src/retry.py", lines="12")
    wanted = {
        "none": "",
        "cursor": f"cursor://file{lighthouse}/src/retry.py:{{line}}",
        "idea://open?file={path}&line={line}": (
            f"idea://open?file={lighthouse}/src/retry.py&line={{line}}"
        ),
    }[setting]
    found = re.search('data-editor="([^"]*)"', html)
    assert unescape(found[1] if found else "") == wanted
    assert ('aria-label="Open in' in html) == bool(wanted)


def test_a_path_that_is_unknown_on_the_host_is_not_opened_in_an_editor(
    client: Client, lighthouse: Path, configure
) -> None:
    configure(in_container=True, host_ingest_dir="")
    assert "data-open-editor" not in get(client, "/code/lighthouse/src/retry.py")


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("nowhere/a.py", "REPO_NOT_FOUND"),
        ("lighthouse/nowhere.py", "FILE_NOT_FOUND"),
        ("lighthouse/../lighthouse/src/retry.py", "FILE_NOT_FOUND"),
        ("lighthouse//etc/passwd", "FILE_NOT_FOUND"),
        ("lighthouse/src/retry.py\n", "FILE_NOT_FOUND"),
        ("lighthouse/" + "x/" * 2_000, "FILE_NOT_FOUND"),
    ],
)
def test_what_was_not_ingested_is_404(
    client: Client, lighthouse: Path, where: str, code: str
) -> None:
    html = get(client, f"/code/{quote(where)}", 404)
    assert code in html
    assert 'href="/code"' in html


def test_hostile_names_are_listed_escaped_and_open(client: Client, folder: Path, db: None) -> None:
    ingest(write_files(folder, dict.fromkeys(HOSTILE, "def odd():\n    return 1\n")), "odd")
    folders = {f"{name.rpartition('/')[0]}" for name in HOSTILE if "/" in name}
    for name in HOSTILE:
        url = code_url("odd", name)
        html = get(client, url)
        assert "odd" in text(html)
        assert "<img" not in html
        assert url in hrefs(html)
        found = get(client, "/ui/code/tree", repo="odd", q=name)
        assert url in hrefs(found)
    for each in folders:
        assert code_url("odd", each) in hrefs(get(client, "/code/odd"))
        assert hrefs(get(client, "/ui/code/tree", repo="odd", path=each)) != []


@pytest.mark.parametrize("name", ["team/tool", "a b%2F?#", "..", ".", "x/"])
def test_the_id_of_a_repository_may_be_anything(
    client: Client, shelf: Shelf, folder: Path, name: str
) -> None:
    write_files(folder, {"src/a.py": "x = 1\n"})
    shelf.root(name, path=str(folder))
    shelf.put(0.1, "src/a.py", "x = 1\n", repo=name)
    assert code_url(name) in hrefs(get(client, "/code"))
    for url in (code_url(name), code_url(name, "src"), source_url(name, "src/a.py", 1, 1)):
        parts = urlsplit(url)
        # As a browser and the server leave it.
        assert not {".", ".."} & set(parts.path.split("/"))
        assert "src" in get(client, url)
    assert code_url(name, "src/a.py") in hrefs(get(client, code_url(name, "src")))
    assert "Line 1" in get(client, source_url(name, "src/a.py", 1, 1))


def test_a_large_folder_is_listed_in_pages(client: Client, shelf: Shelf, folder: Path) -> None:
    shelf.root(path=str(folder))
    file = shelf.file("many/f0000.py")
    paths = [f"many/f{n:04}.py" for n in range(1, 2 * PAGE_SIZE + 10)]
    SourceFile.objects.bulk_create(
        SourceFile(root=file.root, run=file.run, path=path, since=1) for path in paths
    )
    SourceFile.objects.update(sha256="00" * 32)
    html = get(client, "/code/repo/many")
    assert html.count("data-row=") == PAGE_SIZE
    assert f"the other {PAGE_SIZE + 10:,}" in html
    names = set(hrefs(get(client, "/ui/code/tree", repo="repo", path="many", after=PAGE_SIZE)))
    assert len(names) == PAGE_SIZE
    assert "/code/repo/many/f0500.py" in names
    last = get(client, "/ui/code/tree", repo="repo", path="many", after=2 * PAGE_SIZE, rows="1")
    assert last.count("data-row=") == 10
    found = get(client, "/ui/code/tree", repo="repo", q="F00")
    assert len(hrefs(found)) == MAX_FOUND_FILES
    assert "No path contains this" in get(client, "/ui/code/tree", repo="repo", q="zzz")
    for wrong in ("x", "-1", "9" * 50):
        get(client, "/ui/code/tree", 400, repo="repo", path="many", after=wrong)


# --- large files ----------------------------------------------------------------------------------


def test_a_long_file_is_whole_and_gets_its_colours_by_blocks(
    client: Client, folder: Path, db: None
) -> None:
    source = "".join(f"def step_{n}():\n    return '{n}'\n\n" for n in range(1_000))
    ingest(write_files(folder, {"long.py": source}), "long")
    html = get(client, "/code/long/long.py", lines="2401")
    numbers = re.findall(r'name="L(\d+)"', html)
    assert numbers == [str(n) for n in range(1, 3_001)]
    plain = [unescape(url) for url in re.findall(r'data-plain="([^"]+)"', html)]
    # The cited block and its neighbours have theirs.
    assert len(plain) == 3_000 // BLOCK - 2
    block = next(url for url in plain if "start=401&" in url)
    lines = get(client, block)
    assert re.findall(r'name="L(\d+)"', lines) == [str(n) for n in range(401, 601)]
    assert '<span class="k">def</span> <span class="nf">step_134</span>' in lines
    unmarked = re.sub(r"<[^>]*>", "", lines).strip("\n")
    assert unmarked in re.sub(r"<[^>]*>", "", html)


def test_a_string_that_begins_far_above_is_coloured_as_one(
    client: Client, folder: Path, db: None
) -> None:
    source = 'TEXT = """\n' + "for each in words:\n" * 1_500 + '"""\nx = 1\n'
    ingest(write_files(folder, {"text.py": source}), "text")
    html = get(client, "/code/text/text.py", lines="1400")
    assert '<span class="sd">for each in words:</span>' in html or '"s2">for each' in html
    assert '<span class="k">for</span>' not in html


def test_the_cited_lines_of_a_long_file_are_coloured_from_the_definition_before_them(
    client: Client, folder: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = 'def step_{0}():\n    """Step {0}\n    if it must.\n    """\n    return \'{0}\'\n\n'
    source = "".join(step.format(n) for n in range(500))
    ingest(write_files(folder, {"long.py": source, "long.php": source}), "long")
    lexed: list[str] = []

    def tokens(text: str, lexer: str) -> Tokens:
        lexed.append(text)
        return lexers.tokens(text, lexer)

    recording = SimpleNamespace(tokens=tokens, all_tokens=lexers.all_tokens)
    monkeypatch.setattr(highlight, "lexers", recording)
    html = get(client, "/code/long/long.py", lines="2704-2706")
    (text,) = lexed
    assert text.startswith("def step_433():"), "in which the block begins"
    whole = highlight_lines(source, path="long.py")
    for number in range(2_601, 3_001):
        assert f">{number}</a>{whole[number - 1]}\n" in html
    del lexed[:]
    # A file that has changed, and a language that must be read from its beginning.
    (folder / "long.py").write_text(f"# Changed\n{source}")
    get(client, "/code/long/long.py", lines="2704-2706")
    get(client, "/code/long/long.php", lines="2704-2706")
    assert [each.split("\n")[0] for each in lexed] == ["# Changed", "def step_0():"]


def test_a_line_of_many_characters_is_cut(client: Client, folder: Path, db: None) -> None:
    line = "var a=1;" * 50_000
    ingest(write_files(folder, {"data.js": "step();\n" * 3_000 + line}), "min")
    html = get(client, "/code/min/data.js")
    assert f"{len(line) - MAX_LINE_CHARS:,} more characters" in html
    assert len(html) < len(line) * 2
    assert html.count("step") == 3_000


def test_what_follows_a_line_that_is_cut_has_its_colours(
    client: Client, folder: Path, db: None
) -> None:
    text = json.dumps({"image": "QUJD" * 5_000, "name": "churn"}, indent=1)
    ingest(write_files(folder, {"data.json": text}), "cut")
    html = get(client, "/code/cut/data.json")
    assert re.search(r"QUJD&quot;</span>", html), "its end is shown"
    assert '<span class="nt">&quot;name&quot;</span>' in html


# --- matches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ({"find": "attempt"}, "6,7,8,17,18"),
        ({"find": "RETRY"}, "11,17"),
        ({"find": "RETRY", "how": "text"}, None),
        ({"find": r"def \w+_retry", "how": "regex"}, "17"),
        ({"find": "(", "how": "regex"}, None),
        ({"find": "when does it retry after seconds"}, "1,7,11,17"),
        ({"find": "zebra"}, None),
    ],
)
def test_a_file_knows_the_lines_that_led_to_it(
    client: Client, lighthouse: Path, query: dict[str, str], matches: str | None
) -> None:
    html = get(client, "/code/lighthouse/src/retry.py", **query)
    found = re.search('data-matches="([^"]*)"', html)
    assert (found[1] if found else None) == matches
    assert ("No line matches" in html) == (matches is None)


# --- names ----------------------------------------------------------------------------------------


def test_a_name_leads_to_its_definition_callers_and_uses(client: Client, lighthouse: Path) -> None:
    where = {"name": "RetryPolicy", "repo": "lighthouse", "path": "src/work.py", "line": 5}
    html = get(client, "/ui/code/name", **where)
    assert "/code/lighthouse/src/retry.py?lines=11-18#L11" in hrefs(html)
    assert "class RetryPolicy" in text(html)
    parts = [unescape(url) for url in re.findall(r'hx-get="([^"]+)"', html)]
    callers, uses = (get(client, url) for url in parts)
    assert "/code/lighthouse/src/work.py?lines=5#L5" in hrefs(callers)
    assert "in again" in text(callers)
    assert "from src . retry import RetryPolicy" in text(uses)


def test_the_panel_says_what_it_does_not_know(client: Client, lighthouse: Path) -> None:
    html = get(client, "/ui/code/name", name="nowhere_defined", repo="lighthouse")
    assert "No ingested file defines this name" in html
    assert "part=callers" not in html
    uses = get(client, "/ui/code/name", name="nowhere_defined", repo="lighthouse", part="uses")
    assert "No line has this name" in uses
    for wrong in ({"name": ""}, {"name": "x", "line": "y"}, {"name": "x" * 500}):
        assert "VALIDATION_FAILED" in get(client, "/ui/code/name", 400, **wrong)
    assert "REPO_NOT_FOUND" in get(client, "/ui/code/name", 404, name="x", repo="nowhere")


def test_the_panel_says_that_there_is_more(client: Client, folder: Path, db: None) -> None:
    files = {f"m{n:02}.py": f"def twin():\n    return {n}\n\n\ntwin()\n" for n in range(40)}
    ingest(write_files(folder, files), "twins")
    where = {"name": "twin", "repo": "twins", "path": "m07.py", "line": 1}
    html = get(client, "/ui/code/name", **where)
    assert "There are more definitions" in html
    first = re.search(r'names__row" href="([^"]+)"', html)
    assert first
    assert first[1].startswith("/code/twins/m07.py")
    assert "here" in text(html)
    callers = get(client, "/ui/code/name", part="callers", **where)
    # Of the definition that was clicked, not of all that are named so.
    assert {urlsplit(url).path for url in hrefs(callers)} == {"/code/twins/m07.py"}
    uses = get(client, "/ui/code/name", part="uses", **where)
    assert "These are the first 30 lines" in text(uses)


def test_a_name_of_another_repository_is_found_there(
    client: Client, folder: Path, db: None
) -> None:
    ingest(write_files(folder / "one", {"a.py": "def only_here():\n    return 1\n"}), "one")
    ingest(write_files(folder / "two", {"b.py": "only_here()\n"}), "two")
    html = get(client, "/ui/code/name", name="only_here", repo="two", path="b.py", line=1)
    assert "Not defined in two" in text(html)
    assert "/code/one/a.py?lines=1-2#L1" in hrefs(html)
