"""Words that the query and the code have in common are marked, and nothing else."""

import re
from html import unescape

import pytest
from django.utils.html import escape
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from apps.browse.highlight import highlight_lines
from apps.browse.marks import counted, marked, spans_marked, words_of

pytestmark = pytest.mark.door
INDEX = st.integers(0, 25)


@pytest.mark.parametrize(
    ("question", "code", "expected"),
    [
        ("which timeout wins", "x = timeout", "x = <mark>timeout</mark>"),
        ("which timeout wins", "DEFAULT_TIMEOUT(1)", "<mark>DEFAULT_TIMEOUT</mark>(1)"),
        ("parsing headers", "parseHeader()", "<mark>parseHeader</mark>()"),
        ("how is the set of it", "the_set_of(it)", "the_set_of(it)"),
        ("time", "sometimes", "sometimes"),
        ("订单折扣怎么计算", "# 计算订单折扣的", "# <mark>计算订单折扣</mark>的"),
        ("расчёт скидки", "# скидки", "# <mark>скидки</mark>"),
        ("a tag", "<b>tag</b> & x", "&lt;b&gt;<mark>tag</mark>&lt;/b&gt; &amp; x"),
    ],
)
def test_names_that_share_a_word_are_marked(question: str, code: str, expected: str) -> None:
    assert marked(code, words_of(question)) == expected


def test_a_mark_is_inside_its_coloured_span() -> None:
    html = highlight_lines("def run(): return 1", path="a.py", marks=words_of("return of run"))
    assert '<span class="nf"><mark>run</mark></span>' in html[0]
    assert '<span class="k">return</span>' in html[0]


@given(st.text(alphabet="ab<&\"' ", max_size=20), st.lists(st.tuples(INDEX, INDEX), max_size=4))
def test_marked_spans_change_no_text(text: str, places: list[tuple[int, int]]) -> None:
    spans = sorted((min(pair), max(pair)) for pair in places)
    html = spans_marked(
        mark_safe(f'<span class="k">{escape(text[:7])}</span>{escape(text[7:])}'), spans
    )
    assert unescape(re.sub("<[^<>]*>", "", html)) == text
    marked = "".join(re.findall(r"<mark>(.*?)</mark>", html))
    inside = {place for start, end in spans for place in range(start, end)}
    assert unescape(marked) == "".join(c for place, c in enumerate(text) if place in inside)


def test_the_words_of_a_query_are_counted_in_a_text() -> None:
    text = "timeout = default_timeout(timeouts)  # TimeOut"
    assert counted(text, "the default timeouts and retries") == [("default", 1), ("timeouts", 3)]
    assert counted("订单的折扣", "订单折扣") == [("订单", 1), ("折扣", 1)]
