"""Highlighting keeps every line and escapes all HTML."""

import os
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers.special import TextLexer

from apps.browse import lexer_process
from apps.browse.highlight import MAX_CHARS, highlight_lines, highlight_texts, lexer_for
from apps.browse.lexer_process import Lexers
from apps.code.languages import FILE_TYPES, FileType

pytestmark = pytest.mark.door

NAMES = st.sampled_from(
    ["a.py", "b.html", "c.ts", "Makefile", "d.rs", "e.md", "f.unknown", "g.php", "h.json", ""]
)
TEXTS = st.text(alphabet="ab<>&\"'\n\r\t {}()/*#é😀\ufeff`", max_size=60)


@given(NAMES, TEXTS)
def test_highlighted_lines_are_the_lines_of_the_text(name: str, text: str) -> None:
    html = highlight_lines(text, path=name)
    assert [unescape(re.sub(r"<[^>]*>", "", line)) for line in html] == text.split("\n")


@given(NAMES, TEXTS)
def test_only_spans_with_a_coloured_class_are_written(name: str, text: str) -> None:
    for line in highlight_lines(text, path=name):
        assert re.fullmatch(r'([^<>]|<span class="[a-z0-9]+">[^<>]*</span>)*', line)


def test_the_file_name_selects_the_lexer() -> None:
    assert highlight_lines("def run(): pass", path="src/a.py")[0].startswith(
        '<span class="k">def</span> <span class="nf">run</span>'
    )


def test_the_language_takes_precedence_over_the_name() -> None:
    assert (
        '<span class="k">def</span>' in highlight_lines("def x", path="a.txt", language="python")[0]
    )


@pytest.mark.parametrize("kind", FILE_TYPES, ids=lambda kind: kind.name)
def test_each_language_that_is_ingested_has_a_lexer(kind: FileType) -> None:
    assert kind.lexer == "text" or lexer_for("", kind.name) is not TextLexer


@pytest.mark.parametrize("language", ["klingon", "", "  "])
def test_an_unknown_language_is_plain_text(language: str) -> None:
    assert highlight_lines("def <x>", language=language) == ["def &lt;x&gt;"]


def test_a_string_over_several_lines_is_closed_and_opened_on_each() -> None:
    assert highlight_lines('"""a\nb"""', path="a.py") == [
        '<span class="sd">&quot;&quot;&quot;a</span>',
        '<span class="sd">b&quot;&quot;&quot;</span>',
    ]


def test_a_very_long_text_is_escaped_and_left_plain() -> None:
    text = "x = '<'\n" * (MAX_CHARS // 8 + 1)
    assert set(highlight_lines(text, path="a.py")) == {"x = &#x27;&lt;&#x27;", ""}


# Each holds one of Pygments' lexers up for minutes or more.
HOSTILE = [("Markdown", "\n" * 90_000), ("Makefile", "${" * 40_000)]
HOSTILE += [("reStructuredText", "\n" * 90_000)]


@pytest.mark.fault("A text that takes too long to highlight")
@pytest.mark.door
def test_a_text_that_takes_its_lexer_too_long_is_shown_plain() -> None:
    lexers = Lexers()
    for lexer, text in HOSTILE[:2]:
        assert lexers.tokens(text, lexer) == (("", text),)
    # The next one is not the worse for it.
    assert ("k", "def") in lexers.tokens("def f(): pass", "Python")
    # After several nobody waits for more of them, nor for anything else, for a minute.
    assert lexers.tokens(HOSTILE[2][1], HOSTILE[2][0]) == (("", HOSTILE[2][1]),)
    assert lexers.tokens("def f(): pass", "Python") == (("", "def f(): pass"),)


def test_several_texts_are_highlighted_as_each_alone() -> None:
    texts = [("x = 1", "a.py"), ("a < b", "a.txt"), ("", "a.py"), ("x = 1", "b.py")]
    texts.append(("x = 1\n" * MAX_CHARS, "a.py"))
    codes = [(text, path, "") for text, path in texts]
    assert highlight_texts(codes) == [highlight_lines(text, path=path) for text, path in texts]
    assert highlight_texts([]) == []


@pytest.mark.fault("A text that takes too long to highlight")
def test_of_several_texts_only_the_one_that_takes_too_long_is_plain() -> None:
    lexer, slow = HOSTILE[0]
    texts = [("x = 1", "Python"), (slow, lexer), ("y = 1", "Python")]
    for lexers in [Lexers()] * 2:  # at first, and once it is known
        first, plain, last = lexers.all_tokens(texts)
        assert (first[0], list(plain), last[0]) == (("n", "x"), [("", slow)], ("n", "y"))


def test_after_a_while_the_rest_of_several_texts_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer_process, "MAX_SECONDS", 0)
    lexer, slow = HOSTILE[0]
    assert Lexers().all_tokens([(slow, lexer), ("y = 1", "Python")])[1] == (("", "y = 1"),)


def test_several_texts_are_lexed_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer_process, "lexed", end_this_process)  # of one text alone
    tokens = Lexers().all_tokens([("x = 1", "Python"), ("y = 1", "Python")])
    assert [first for first, *_ in tokens] == [("n", "x"), ("n", "y")]


@pytest.mark.fault("A text that takes too long to highlight")
@pytest.mark.door
def test_a_lexer_that_is_killed_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lexers = Lexers()
    with monkeypatch.context() as patch:
        patch.setattr(lexer_process, "lexed", end_this_process)
        assert lexers.tokens("x = 1", "Python") == (("", "x = 1"),)
    assert lexers.tokens("y = 1", "Python")[0] == ("n", "y")


def end_this_process(text: str, lexer: str) -> None:
    os._exit(1)
