"""What nobody should type, and somebody does: each page answers, and says what is wrong."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.browse import page_search
from apps.browse.search_syntax import KEYS

pytestmark = [pytest.mark.door, pytest.mark.django_db, pytest.mark.usefixtures("harbour")]

NOTHING = "No matches for"
# What is typed, and what the search page says.
TYPED = {
    "moor file:[": NOTHING,
    "moor file:]": NOTHING,
    "moor file:[z-a]": NOTHING,
    "moor file:[!": NOTHING,
    "moor file:[[:alpha:]]": NOTHING,
    "moor file:{a,b": NOTHING,
    "moor file:" + "{a,b}" * 7: "Path must stand for at most 64 globs",
    "moor file:" + "*" * 900: "match",
    "moor file:" + "*a" * 400: NOTHING,
    "moor file:" + "**/" * 300 + "x": "Path must stand for at most 64 globs",
    "moor file:" + "a" * 2_000: "Path must have at most 1,000 characters",
    "moor file:../x": "Path must not hold ..",
    "moor file:/etc": "Path must be relative to the repository",
    "moor file:C:\\x": "matches the path '*C:\\\\x*'",
    "moor file:\0": "Path must not hold a NUL",
    'moor file:"a b': "the quote is not closed",
    "moor repo:nowhere": "No repository named “nowhere”",
    "moor repo:" + "x" * 9_000: "No repository named “xxx",
    "moor repo:\0": "No repository named",
    "moor repo:🚢": "No repository named “🚢”",
    "moor repo:\u202erobrah": "No repository named “\u202erobrah”",
    "moor " + "repo:harbour " * 100: "match",
    "moor " + " ".join(f"repo:r{n}" for n in range(100)): "No repository named “r0”",
    "moor " + "repo:a " * 1_400: "No repository named “a”",
    "moor lang:klingon": "Lang:klingon: this is not a language that codeinfo knows",
    "moor lang:\0": "is not a language that codeinfo knows",
    "moor "
    + " ".join(
        f"lang:l{n}" for n in range(100)
    ): "Lang:l0: this is not a language that codeinfo knows",
    "moor "
    + " ".join(
        f"file:f{n}" for n in range(100)
    ): "At most 16 texts, filters and words to leave out",
    "moor " + " ".join(f"-w{n}" for n in range(100)): "At most 16 texts",
    '"': "the quote is not closed",
    'moor "a" "b" "': "the quote is not closed",
    '-"': "the quote is not closed",
    '"\\"': "the quote is not closed",
    '"a\nb"': NOTHING,
    'moor -"a\nb"': "match",
    '"\0"': NOTHING,
    '"\\n"': NOTHING,
    "/(/": "/(/: missing )",
    "/[/": "/[/: this is no whole expression",
    "/*/": "no argument for repetition operator",
    "/\\/": "this is no whole expression",
    "/(?<=a)b/": "RE2 has no lookahead",
    r"/(a)\1/": "RE2 has no backreferences",
    "/(x+x+)+y/": NOTHING,
    "/((((a|aa)+)+)+)+$/i": NOTHING,
    "moor " + "/a/ " * 17: "/a/: at most 16 expressions",
    "/((a{1000}){1000}){1000}/": "invalid repetition size",
    "/" + "(a|" * 240 + "b" + ")" * 240 + "/": "Exact ×",
    "/" + "a" * 5_000 + "/": "an expression has at most 1,000 characters",
    "/" + "a" * 9_990 + "/i": "an expression has at most 1,000 characters",
    "/" + "a b" * 1_000 + "/": "match",  # words, as a path with spaces would be
    "/" + "a" * 10_000 + "/": "A search has at most 10,000 characters",
    '"' + "a" * 2_000 + '"': "a text or expression has at most 1,000 characters",
    " ".join(f'"{n:0400}"' for n in range(9)): NOTHING,
    "x" * 100_000: "A search has at most 10,000 characters",
    "\0": "match",
    "mo\0or": "match",
    "\u202emoor\u202c \u200f\u2066": "match",
    "🚢⚓️ 👩‍👩‍👧‍👦": "match",
    "é" * 300: "match",
    "\u0301" * 500: "match",
    "\ufffd\ufffe\uffff": "match",
    "<script>alert(1)</script>": "match",
    "' OR 1=1 --": "match",
    "%_\\%": "match",
    "- -- ->": "match",
    "( " * 5_000: "match",
    '("a" OR ' * 1_200 + '"b"': "match",
    '( "moor" OR ' * 8 + '"ship"' + " )" * 8: "lines in",
    '( "moor" OR ' * 9
    + '"ship"'
    + " )" * 9: "The parentheses are not balanced, or nested too deep",
    "moor " + "OR " * 3_000: "match",
    "type:file": "files",
    "moor type:repo": "there is type:file only",
    "moor case:maybe": "there is case:yes or case:no only",
    "moor rev:none": "no repository is ingested as name@none",
    "moor sym:" + "x" * 900: "nothing with this name is defined",
    "moor sym:Ship.moor.\0": "nothing with this name is defined",
    "content:": "has no value",
    "-a -b": "there is nothing to search for",
    "file:src/": "Search by meaning",
}


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


def page(client: Client, path: str, params: dict[str, Any], **headers: str) -> str:
    response = client.get(path, params, headers=headers)
    assert response.status_code == 200, (path, params)
    html: str = response.content.decode()
    assert "<script>alert" not in html
    return html


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: ascii(typed)[:40])
def test_the_search_page_says_what_is_wrong(client: Client, typed: str) -> None:
    said = text(page(client, "/search", {"q": typed}))
    assert TYPED[typed].lower() in said.lower(), said[-900:]
    page(client, "/search", {"q": typed, "mode": "symbols"})
    page(client, "/search", {"q": typed}, **{"HX-Request": "true", "X-Live": "1"})


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: ascii(typed)[:40])
def test_the_palette_and_the_lists_answer(client: Client, typed: str) -> None:
    html = page(client, "/ui/palette", {"q": typed})
    if typed.replace("\0", "").strip():
        assert "Search code for" in html and "data-missing" not in html
    page(client, "/ui/palette", {"q": typed, "part": "meaning"})
    for name in ("q", "repo", "c", "a", "n", "state"):
        page(client, "/ui/chat/sidebar", {name: typed})
    page(client, "/ui/chat/scope", {"at": typed, "scope": [typed] * 200})
    page(client, "/chat", {"ask": typed, "repo": typed, "scope": typed, "c": typed})


@pytest.mark.parametrize("name", ["repository", "language", "path", "limit", "weaker", "page"])
def test_no_filter_beside_the_box_breaks_the_page(client: Client, name: str) -> None:
    for value in ("\0", "🚢", "x" * 60_000, "9" * 5_000, "-1", "٣", "[", "{a,b}" * 7, "\u202e"):
        page(client, "/search", {"q": "moor", name: value})
        page(client, "/search", {"q": '"moor"', name: [value] * 120})


def test_a_hundred_repositories_are_looked_up_at_once(client: Client) -> None:
    counts = []
    for number in (1, 100):
        with CaptureQueriesContext(connection) as queries:
            page(client, "/search", {"q": "moor " + "repo:harbour " * number})
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_counting_what_filters_exclude_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    count_results = page_search.count_results

    def counted(query: Any, until: float) -> int:
        asked.append(query.q)
        return count_results(query, until)

    monkeypatch.setattr(page_search, "count_results", counted)
    monkeypatch.setattr(page_search, "EXCLUSION_SECONDS", -1.0)
    searched: list[str] = []
    find_passages = page_search.find_passages
    monkeypatch.setattr(
        page_search, "find_passages", lambda query: searched.append(query.q) or find_passages(query)
    )
    html = page(client, "/search", {"q": "moor file:none " + " ".join(f"-w{n}" for n in range(15))})
    assert len(asked) > 10 and searched == []
    assert NOTHING in text(html)


KEY_WORDS = [f"{key}:" for key in KEYS]
MARKS = [*'"/-\\[](){}*?|+.^$ ', "\0", "🚢", "\u202e"]
PIECES = st.lists(
    st.sampled_from([*KEY_WORDS, *MARKS]) | st.text(st.characters(codec="utf-8"), max_size=8),
    max_size=12,
).map("".join)


@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(typed=PIECES)
def test_any_text_is_answered(client: Client, typed: str) -> None:
    page(client, "/search", {"q": typed})
    page(client, "/ui/palette", {"q": typed})
