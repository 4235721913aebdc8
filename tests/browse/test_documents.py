"""Markdown in the code browser: rendered, safe, with a switch to its source."""

import re
from pathlib import Path

import pytest
from django.test import Client

from apps.browse import highlight
from apps.browse.documents import MAX_CHARS, rendered
from tests.browse.pages import get, link
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

GUIDE = """\
# The lamp

See [the code](../src/lamp.py#L2), [the folder](../src/), [itself](#the-lamp),
[the top](/README.md#use),
[nothing](gone.py), [outside](../../../etc/passwd), [the web](https://example.com/a) and
[a script](javascript:alert(1)).

[![Build state](https://ci.example.com/badge.svg)](https://ci.example.com/runs)
![A drawing](drawing.svg) ![Far <b>away</b>](https://example.com/far.png)
<p align="center"><img src="x" onerror="alert(1)" alt="<script>alert(2)</script>"></p>

| a | b |
| - | - |
| 1 | 2 |

## The lamp
"""
FILES = {
    "README.md": "# Harbour\n\n## Use\n\nRead [the guide](docs/guide.md#the-lamp-1).\n",
    "docs/guide.md": GUIDE,
    "docs/drawing.svg": "<svg></svg>\n",
    "src/lamp.py": "def lamp():\n    return 1\n",
}


@pytest.fixture
def harbour(folder: Path, db: None) -> Path:
    ingest(write_files(folder, FILES), "harbour")
    return folder


def document(html: str) -> str:
    match = re.search(
        r'<div class="viewer__code document".*?<div class="prose">(.*?)</div>', html, re.S
    )
    return match[1] if match else ""


def test_markdown_is_rendered_and_its_relative_links_lead_into_the_code(
    client: Client, harbour: Path
) -> None:
    html = document(get(client, "/code/harbour/docs/guide.md"))
    assert '<h1 id="doc-the-lamp">The lamp</h1>' in html
    assert '<h2 id="doc-the-lamp-1">' in html and "<td>2</td>" in html
    assert link(html, "the code") == "/code/harbour/src/lamp.py#L2"
    assert link(html, "the folder") == "/code/harbour/src"
    assert link(html, "itself") == "#doc-the-lamp"
    assert link(html, "the top") == "/code/harbour/README.md#doc-use"
    assert link(html, "the web") == "https://example.com/a"
    for name in ("nothing", "outside", "a script"):
        assert re.search(rf"<a(?![^>]*href)[^>]*>{name}</a>", html)
    assert "passwd" not in html and "javascript" not in html and "gone.py" not in html


def test_images_become_their_texts_and_nothing_runs(client: Client, harbour: Path) -> None:
    html = document(get(client, "/code/harbour/docs/guide.md"))
    assert "<img" not in html and "<script" not in html and "onerror" not in html
    assert re.search(
        r'<a href="https://ci.example.com/runs"[^>]*><span>Build state</span></a>', html
    )
    assert link(html, "A drawing") == "/code/harbour/docs/drawing.svg"
    assert 'href="https://example.com/far.png"' in html
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in html


def test_lines_of_markdown_are_shown_in_its_source(client: Client, harbour: Path) -> None:
    html = get(client, "/code/harbour/README.md")
    assert document(html) and "Preview" not in html
    source = get(client, link(html, "Source"))
    assert not document(source) and 'name="L3"' in source
    assert link(source, "Preview") == "/code/harbour/README.md"
    for query in ("lines=3", "find=guide", "around=3"):
        assert not document(get(client, f"/code/harbour/README.md?{query}"))
    cited = get(client, "/code/harbour/README.md?lines=3")
    assert '<span class="line is-cited"><a class="ln" name="L3"' in cited
    assert link(cited, "Preview") == "/code/harbour/README.md"


def test_blocks_of_code_are_highlighted_by_their_language() -> None:
    html = rendered("```python\ndef f(a): # <b>\n    ...\n```\n", lambda url: url)
    assert (
        '<pre class="hl" tabindex="0"><code><span class="k">def</span> <span class="nf">f</span>'
        in html
    )
    assert "# &lt;b&gt;" in html and html.endswith("    ...\n</code></pre>\n")
    for info in ("", "no-such-language", "mermaid", "<script>"):
        assert "<span" not in rendered(f"```{info}\ndef f():\n```\n", lambda url: url)


def test_the_classes_of_a_document_are_those_of_code() -> None:
    html = rendered('<p lang="javascript" title="b">a</p><i lang="-">c</i>', lambda url: url)
    assert html == '<p title="b">a</p><i>c</i>'
    html = rendered('<span class="k dialog">a</span><pre class="hl page">b</pre>', lambda url: url)
    assert "dialog" not in html and "page" not in html
    assert "class" not in rendered('<p class="hl">a</p><div class="k">b</div>', lambda url: url)


@pytest.mark.parametrize(("limit", "value", "count"), [("BLOCKS", 2, 2), ("SECONDS", 1e-9, 1)])
def test_only_so_many_blocks_of_a_document_are_highlighted_and_only_so_long(
    limit: str, value: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highlight, f"MAX_{limit}", value)
    html = rendered("```py\ndef f(): ...\n```\n\n" * 4, lambda url: url)
    assert html.count('<span class="k">def</span>') == count and html.count("def") == 4


def test_long_markdown_is_text(client: Client) -> None:
    html = rendered("# a\n<b>" + "x" * MAX_CHARS, lambda url: url)
    assert html.startswith('<pre tabindex="0"># a\n&lt;b&gt;xxx')


@pytest.mark.parametrize(
    "pattern",
    ["[", "![", "# a\n", "a\n---\n", "|a|b|\n|-|-|\n", "<div><b>", "![[]()", "<img src=x>"],
)
def test_hostile_markdown_is_rendered(pattern: str) -> None:
    assert rendered((pattern * MAX_CHARS)[:MAX_CHARS], lambda url: url)
