"""A model's text as HTML: what it may look like, what it cites, and that nothing in it runs."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.browse import highlight
from apps.browse.sanitise import ATTRIBUTES, TAGS, pages, sanitise
from apps.conversations.answers import diagrams, markdown
from apps.conversations.answers.citations import Citations
from apps.conversations.answers.markdown import AnswerRenderer, plain, split
from apps.conversations.answers.passages import Passage, passages_of

CODE = "def build():\n    timeout = 5\n    return timeout"
CLIENT = Passage("httpx", "httpx/_client.py", 371, 373, CODE, 0.532, "python")
CONFIG = Passage("httpx", "httpx/_config.py", 240, 250, "\n".join("abcdefghijk"), 0.7)


def rendered(text: str, *passages: Passage) -> tuple[str, Citations]:
    citations = Citations()
    citations.learn(passages or (CLIENT, CONFIG))
    return AnswerRenderer(citations).text(text), citations


def words(html: str) -> str:
    """The text of some HTML, blanks as one."""
    return " ".join(re.sub(r"<[^>]+>", "", html).replace("&nbsp;", " ").split())


# Citations


def test_references_become_numbers_in_order_of_use() -> None:
    html, citations = rendered(
        "The default is five (`httpx/httpx/_config.py:246`). It is read there "
        "`httpx/httpx/_client.py:371-373`, and again `httpx/httpx/_config.py:246`."
    )
    assert [(c.number, c.passage.name, c.start, c.end) for c in citations.used] == [
        (1, "_config.py", 246, 246),
        (2, "_client.py", 371, 373),
    ]
    assert (
        words(html) == "The default is five 1. It is read there _client.py:371–373 2, and again 1."
    )
    assert 'aria-label="Source 2: _client.py lines 371 to 373"' in html


def test_a_citation_opens_the_cited_lines() -> None:
    html, _ = rendered("So it is (`httpx/httpx/_client.py:372`).")
    pane = "/ui/retrieval/source?repo=httpx&amp;path=httpx%2F_client.py&amp;start=372&amp;end=372"
    assert 'href="/code/httpx/httpx/_client.py?lines=372"' in html
    assert f'data-source="{pane}"' in html


def test_a_reference_that_a_sentence_speaks_of_keeps_its_name() -> None:
    html, _ = rendered("In `httpx/httpx/_client.py:371-373` it is built.")
    assert words(html) == "In _client.py:371–373 1 it is built."
    html, _ = rendered("It is built in `httpx/httpx/_client.py:371-373`, and then sent.")
    assert words(html) == "It is built in _client.py:371–373 1, and then sent."


@pytest.mark.parametrize(
    "text",
    [
        "`httpx/httpx/_client.py:900-910`",  # other lines than those found
        "`starlette/httpx/_client.py:371`",  # another repository
        "`httpx/httpx/_server.py:371`",
        "at 12:30 and 10:45",
        "`http://localhost:8080`",
        "`std::io:12`",
    ],
)
def test_what_no_tool_found_stays_text(text: str) -> None:
    html, citations = rendered(text)
    assert citations.used == []
    assert words(html) == text.replace("`", "")


def test_a_path_without_its_repository_counts_where_only_one_has_it() -> None:
    _, citations = rendered("See `httpx/_client.py:371`.")
    assert [c.passage.repo for c in citations.used] == ["httpx"]
    twin = Passage("fork", CLIENT.path, 371, 373, CODE, 0.6)
    assert rendered("See `httpx/_client.py:371`.", CLIENT, twin)[1].used == []


WHOLE = [(371, 373)]


@pytest.mark.door
@pytest.mark.parametrize(
    ("text", "lines", "shown"),
    [
        ("`{}:371-373,` then", WHOLE, "_client.py:371–373 1, then"),
        ("It is `{}:371-373`, then", WHOLE, "It is _client.py:371–373 1, then"),
        ("It is {}:371-373, then", WHOLE, "It is _client.py:371–373 1, then"),
        ("It is read {}:371-373; then", WHOLE, "It is read 1; then"),
        ("In {}:371-373: it is", WHOLE, "In _client.py:371–373 1: it is"),
        ("It is `{}:371-373`.", WHOLE, "It is 1."),
        ("It is ({}:371–373).", WHOLE, "It is 1."),
        ("It is [{}:371 - 373].", WHOLE, "It is 1."),
        ("It is **{}:371-373**, then", WHOLE, "It is _client.py:371–373 1, then"),
        ("It is **`{}:371-373`**, then", WHOLE, "It is _client.py:371–373 1, then"),
        ("*{}:371*", [(371, 371)], "_client.py:371 1"),
        ("| a | b |\n| - | - |\n| {}:371-373 | x |", WHOLE, "a b _client.py:371–373 1 x"),
        ("| a | b |\n| - | - |\n| `{}:371-373` | x |", WHOLE, "a b _client.py:371–373 1 x"),
        ("- a\n  - b\n    1. {}:371-373", WHOLE, "a b _client.py:371–373 1"),
        ("> - `{}:371-373`", WHOLE, "_client.py:371–373 1"),
        ("## {}:371-373", WHOLE, "_client.py:371–373 1"),
        ("[{}#L371-L373] and", WHOLE, "1 and"),
        ("See {}#L371-L373 and", WHOLE, "See _client.py:371–373 1 and"),
        ("See `{}#L371` and", [(371, 371)], "See _client.py:371 1 and"),
        ("See {}:L371-L373 and", WHOLE, "See _client.py:371–373 1 and"),
        ("See `{}:371:5` and", [(371, 371)], "See _client.py:371 1 and"),
        ("See {}:371:5: and", [(371, 371)], "See _client.py:371 1: and"),
        ("See {} (lines 371–373) and", WHOLE, "See _client.py:371–373 1 and"),
        ("See {} (line 371) and", [(371, 371)], "See _client.py:371 1 and"),
        ("See {}, lines 371-373, and", WHOLE, "See _client.py:371–373 1, and"),
        ("See {} lines 371-373 and", WHOLE, "See _client.py:371–373 1 and"),
        ("See `{}` (lines 371–373) and", WHOLE, "See _client.py:371–373 1 and"),
        ("See `{}`, line 371, and", [(371, 371)], "See _client.py:371 1, and"),
        (
            "See `{}:371, 373` and",
            [(371, 371), (373, 373)],
            "See _client.py:371 1, _client.py:373 2 and",
        ),
        ("See `{}:371-372, 900` and", [(371, 372)], "See _client.py:371–372 1, 900 and"),
        (
            "See {}:371-372, 372-373, and",
            [(371, 372), (372, 373)],
            "See _client.py:371–372 1, _client.py:372–373 2, and",
        ),
        ("See {}:371-372, 373 of", [(371, 372)], "See _client.py:371–372 1, 373 of"),
        ("See {}:371-372, 372-73-01", [(371, 372)], "See _client.py:371–372 1, 372-73-01"),
        ("See **{}** (lines 371–373) and", WHOLE, "See _client.py:371–373 1 and"),
        ("See **`{}`**, lines 371-373, and", WHOLE, "See _client.py:371–373 1, and"),
        ("See ./{}:371-373 and", WHOLE, "See _client.py:371–373 1 and"),
        (
            "See `{}:371-373` and `{}:371-373`.",
            WHOLE,
            "See _client.py:371–373 1 and _client.py:371–373 1.",
        ),
    ],
)
def test_a_reference_is_a_citation_however_it_is_written(
    text: str, lines: list[tuple[int, int]], shown: str
) -> None:
    html, citations = rendered(text.replace("{}", "httpx/_client.py"))
    assert [(c.start, c.end) for c in citations.used] == lines
    assert words(html).replace(" ,", ",") == shown


def test_a_path_of_windows_is_that_of_the_repository() -> None:
    for text in ("See `src\\retry.py:371-373`, then", "See src\\retry.py:371-373, then"):
        html, _ = rendered(text, Passage("app", "src/retry.py", 371, 373, CODE, 0.5))
        assert words(html) == "See retry.py:371–373 1, then"


@pytest.mark.parametrize(
    "text",
    [
        "in lines 371-373 of it",
        "httpx (lines 371-373",
        "`timeout` (lines 371–373)",
        "all that (lines 371-373) but not (lines 371-373)",
        "httpx/_client.py, lines 900-910",
        "`httpx/_client.py:900, 901`",
        "httpx/_client.py#L371x",
    ],
)
def test_what_only_looks_like_a_reference_stays_text(text: str) -> None:
    html, citations = rendered(text)
    assert citations.used == []
    assert words(html) == text.replace("`", "")


def test_cited_lines_are_cut_to_those_that_were_found() -> None:
    _, citations = rendered("See `httpx/httpx/_client.py:300-372`.")
    assert [(c.start, c.end, c.text) for c in citations.used] == [
        (371, 372, "def build():\n    timeout = 5")
    ]


def test_references_in_links_and_code_blocks_stay_what_they_are() -> None:
    _, citations = rendered(
        "[httpx/httpx/_client.py:371](https://example.org)\n\n"
        "```text\nhttpx/httpx/_client.py:371\n```\n"
    )
    assert citations.used == []


def test_entries_that_are_no_passages_are_left_out() -> None:
    rows: list[Any] = [
        {"repo": "r", "relPath": "a.py", "chunk": "x", "startLine": 1, "endLine": 1, "score": 0.5},
        {"repo": "r", "chunk": "x"},
        {"repo": "", "relPath": "a.py", "chunk": "x"},
        {"repo": 1, "relPath": [], "chunk": None},
        "text",
        None,
    ]
    assert [p.path for p in passages_of({"results": rows})] == ["a.py"]
    for other in (None, [], "x", {"results": None}, {"results": {"a": 1}}):
        assert passages_of(other) == []


# Code


@pytest.mark.door
def test_code_under_its_reference_has_the_files_line_numbers() -> None:
    html, citations = rendered(
        "`httpx/httpx/_client.py:372-373`\n\n```python\n    timeout = 5\n    return timeout\n```"
    )
    assert re.findall(r'class="ln">(\d+)<', html) == ["372", "373"]
    assert words(html) == "httpx/httpx/_client.py:372–3731372timeout = 5 373return timeout"
    assert "<p>" not in html
    assert len(citations.used) == 1


@pytest.mark.door
def test_code_that_is_not_the_files_has_no_line_numbers() -> None:
    html, _ = rendered("`httpx/httpx/_client.py:371-373`\n\n```python\nmade = up\n```")
    assert 'class="ln"' not in html
    assert "_client.py:371–373" in html


@pytest.mark.door
def test_a_reference_that_nothing_found_is_not_lost_above_code() -> None:
    html, _ = rendered("`other/file.py:1-2`\n\n```python\nx = 1\n```")
    assert "other/file.py:1-2" in html


@pytest.mark.door
def test_code_is_highlighted_by_its_language() -> None:
    html, _ = rendered("```python\ndef f(): ...\n```")
    assert '<span class="k">def</span>' in html


@pytest.mark.door
@pytest.mark.parametrize("info", ["python title=one", "src/retry.py", "12:15:src/retry.py", "PY"])
def test_a_language_or_a_path_at_the_head_of_code_highlights_it(info: str) -> None:
    for fence in ("```", "~~~~"):
        html, _ = rendered(f"- one\n\n  {fence}{info}\n  def f(): ...\n  {fence}\n")
        assert '<span class="k">def</span>' in html


@pytest.mark.door
@pytest.mark.parametrize(("limit", "value"), [("BLOCKS", 2), ("SECONDS", 1e-9)])
def test_only_so_many_blocks_of_an_answer_are_highlighted_and_only_so_long(
    limit: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highlight, f"MAX_{limit}", value)
    renderer = AnswerRenderer()
    html = "".join(renderer.text("```py\ndef f(): ...\n```\n\n" * 2) for _ in range(2))
    assert html.count('<span class="k">def</span>') == 2 and words(html).count("def f()") == 4


# Markdown


def test_tables_strikethrough_and_outward_links_are_rendered() -> None:
    html = plain("| a | b |\n| - | - |\n| 1 | 2 |\n\n~~old~~ [docs](https://example.org/x?a=1&b=2)")
    assert "<td>1</td>" in html
    assert "<s>old</s>" in html
    assert (
        'href="https://example.org/x?a=1&amp;b=2" target="_blank" rel="noopener noreferrer"' in html
    )


@pytest.mark.fault("Instructions hidden in code")
@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("[the docs](https://example.org/a?b)", "example.org"),
        ("[github.com](https://evil.example/github.com)", "evil.example"),
        ("[x](https://github.com@evil.example/)", "evil.example"),
        ("[x](https://evil.example\\@github.com/)", "github.com"),
        ("[x](http://127.0.0.1:5010/logs)", "127.0.0.1:5010"),
        ("[x](http://[::1]:80/)", "[::1]:80"),
        ("[x](https://g\u0456thub.com/)", "xn--gthub-n2e.com"),
        ("[`code`](https://example.org)", "example.org"),
        ("[x][1]\n\n[1]: https://example.org", "example.org"),
        ("[write](mailto:a@evil.example)", "mailto:a@evil.example"),
        ("<https://bank.example@evil.example>", "evil.example"),
    ],
)
def test_a_link_shows_where_it_leads(source: str, host: str) -> None:
    html, _ = rendered(source)
    assert f'</a> <span class="link-host">({host})</span>' in html


@pytest.mark.parametrize("source", ["<https://example.org/a>", "[ingest](/ingest)"])
def test_a_link_that_shows_it_already_or_stays_here_says_no_more(source: str) -> None:
    html, _ = rendered(source)
    assert "<a href=" in html and "link-host" not in html


def test_the_pages_that_our_own_advice_names_open_in_place() -> None:
    assert plain("[Ingest page](/ingest)").strip() == '<p><a href="/ingest">Ingest page</a></p>'


@pytest.mark.parametrize(
    "address", ["/chat", "/providers", "/lmstudio", "/agents", "/connect", "/code", "/logs"]
)
def test_every_page_of_this_server_may_be_linked_to(address: str) -> None:
    assert plain(f"[here]({address})").strip() == f'<p><a href="{address}">here</a></p>'


@pytest.mark.parametrize(
    "address", ["/logout", "/metrics", "/ui/chat/send", "/mcp", "//evil.example", "/nowhere"]
)
def test_what_is_no_page_of_this_server_is_not_linked_to(address: str) -> None:
    assert "<a " not in plain(f"[here]({address})")


@pytest.mark.fault("Instructions hidden in code")
def test_images_are_never_loaded() -> None:
    html = plain("![x](https://example.org/x.png) ![y][ref]\n\n[ref]: https://example.org/y.png")
    assert "<img" not in html


def test_a_table_is_not_filled_up_without_end() -> None:
    html = plain("|a" * 100 + "|\n" + "|-" * 100 + "|\n" + "b\n" * 1_000)
    assert html.count("<th>") == 100
    assert html.count("<td>") < 2_000


# Blocks

PIECES = st.sampled_from(
    [
        "# Title\n",
        "words ",
        "`code` ",
        "\n",
        "\n\n",
        "- item\n",
        "1. one\n",
        "  indented\n",
        "> q\n",
    ]
    + ["```py\n", "x = 1\n", "```\n", "```", "| a | b |\n", "| - | - |\n", "---\n", "===\n", "\r\n"]
    + [
        "`httpx/httpx/_client.py:371-373`",
        "(the first 3 lines)",
        "~~~\n",
        "    code\n",
        "\u2028",
        "*",
    ]
)


@pytest.mark.door
@given(st.lists(PIECES, max_size=25), st.integers(1, 7))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_blocks_rendered_as_they_come_are_the_whole_rendered_at_once(
    pieces: list[str], size: int
) -> None:
    text = "".join(pieces)
    live, done, html = AnswerRenderer(_known()), 0, ""
    for end in [*range(size, len(text), size), len(text)]:
        blocks, _ = split(text[done:end], ended=end == len(text))
        html += "".join(live.blocks(blocks))
        done += sum(len(block) for block in blocks)
    assert html == AnswerRenderer(_known()).text(text)


@pytest.mark.door
@given(st.lists(PIECES, max_size=25), st.integers(1, 7))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_what_is_too_long_is_plain_text_alike_while_it_comes_and_later(
    pieces: list[str], size: int
) -> None:
    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown, "MAX_BLOCK_CHARS", 20)
        patch.setattr(markdown, "MAX_MARKDOWN_CHARS", 45)
        live, done, html = AnswerRenderer(_known()), 0, ""
        for end in [*range(size, len(text), size), len(text)]:
            more, rest = live.finished(text[done:end], ended=end == len(text))
            html += more
            done = end - len(rest)
        assert html == AnswerRenderer(_known()).text(text)


def test_a_long_answer_ends_as_plain_text_and_says_so() -> None:
    html = plain("**bold** words\n\n" * 10_000)
    assert html.count("<strong>") == pytest.approx(100_000 / 16, rel=0.01)
    assert html.count("The rest of it is shown as plain text.") == 1
    assert html.rstrip().endswith("**bold** words</p>")
    assert words(html).count("words") == 10_000


def test_a_long_block_is_plain_text_and_what_stood_before_it_is_not() -> None:
    html = plain("**bold**\n\n" + "*a " * 20_000 + "\n\n**words**")
    assert html.count("<strong>") == 1
    assert "<em>" not in html
    assert html.rstrip().endswith("**words**</p>")


def test_only_so_many_references_become_numbers() -> None:
    html, _ = rendered("`httpx/httpx/_config.py:246`\n\n" * 2_500)
    assert html.count("data-cite") == 2_000
    assert words(html).count("httpx/httpx/_config.py:246") == 500


def _known() -> Citations:
    citations = Citations()
    citations.learn([CLIENT])
    return citations


# Nothing runs

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<style>@import 'https://example.org/x.css'</style>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:x)",
    "[x](/ui/chat/delete)",
    "[x](//example.org)",
    '[x](https://example.org/"onmouseover="alert(1))',
    "[x](https://example.org 'a\" onmouseover=\"alert(1)')",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](https://example.org/pixel.png)",
    '<https://example.org/"onclick=alert(1)>',
    "[a]: javascript:alert(1)\n\n[a]",
    "```html\n<script>alert(1)</script>\n```",
    "```<script>alert(1)</script>\ncode\n```",
    '```mermaid\nflowchart LR\nA["<img src=x onerror=alert(1)>"]\n```',
    "`<script>alert(1)</script>`",
    "| <script>alert(1)</script> |\n| - |\n| <img src=x onerror=alert(1)> |",
    "<div hx-get='/ui/chat/stop' hx-trigger='load'>x</div>",
    "<button data-stop hx-post='/ui/chat/delete'>x</button>",
    "<template><script>alert(1)</script></template>",
    "\u2028<script>alert(1)</script>\x00<b onclick=alert(1)>",
    "- <details open ontoggle=alert(1)>",
    "> <base href='https://example.org'>",
]


class Checker(HTMLParser):
    """Collects what a browser would see that our own rendering never makes."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = ATTRIBUTES.get(tag, set()) | ATTRIBUTES["*"]
        for name, value in attrs:
            if name not in allowed:
                self.problems.append(f"{tag} {name}")
            if (
                name == "href"
                and not re.match(r"https?://|mailto:|/code[/?]", value or "")
                and value not in pages()
            ):
                self.problems.append(f"href {value}")
            if name == "src" and not (value or "").startswith("data:image/svg+xml;base64,"):
                self.problems.append(f"src {value}")
        if tag not in TAGS:
            self.problems.append(tag)


@pytest.mark.fault("Markup in answers and names")
@pytest.mark.door
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_an_attack_is_left_to_run(attack: str) -> None:
    for text in (attack, f"Words {attack} more", f"- {attack}\n- `a`", f"> {attack}"):
        html, _ = rendered(text)
        checker = Checker()
        checker.feed(html)
        assert checker.problems == []


@pytest.mark.fault("Markup in answers and names")
@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.startswith("<")])
def test_sanitising_alone_would_stop_it_too(attack: str) -> None:
    checker = Checker()
    checker.feed(sanitise(attack))
    assert checker.problems == []


@pytest.mark.fault("Markup in answers and names")
def test_file_names_that_a_tool_reports_are_only_text() -> None:
    name = '"><img src=x onerror=alert(1)>.py'
    found = Passage("r", name, 1, 2, "x\ny", 0.1)
    html, citations = rendered(f"Look (`r/{name}:1-2`)", found)
    assert len(citations.used) == 1
    checker = Checker()
    checker.feed(html)
    assert checker.problems == []


def test_a_diagram_that_was_not_drawn_yet_shows_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagrams, "outcomes", {})
    html = plain("```mermaid\nflowchart LR\n  A --> B\n```")
    assert 'data-diagram="pending"' in html
    assert "A --&gt; B" in html
    assert markdown.diagram("x").count("<img") == 0


# Pictures of calls

CALLS = (
    "```calls\nClient.open @ httpx/httpx/_client.py:372 -> build @ httpx/httpx/_client.py:371\n"
    "main @ elsewhere/main.py:1 ~> Client.open @ httpx/httpx/_client.py:372\n```\n"
)


def test_a_fence_of_calls_is_a_picture_whose_nodes_lead_to_lines_of_passages() -> None:
    html, citations = rendered(CALLS)
    assert html.count('<svg class="graph__svg"') == 1 and html.count("<rect") == 3
    links = re.findall(r'<a class="graph__node" href="([^"]*)"', html)
    assert links == [
        "/code/httpx/httpx/_client.py?lines=372",
        "/code/httpx/httpx/_client.py?lines=371",
    ]
    # Nodes get no numbers, and what no tool returned no link.
    assert citations.used == []
    assert "main possibly calls Client.open" in words(html)


def test_a_fence_of_calls_that_is_something_else_is_code() -> None:
    html, _ = rendered("```calls\n3 calls to action\n```\n")
    assert "<svg" not in html and "3 calls to action" in words(html)
