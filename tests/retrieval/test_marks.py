"""Words that the query and the code have in common are marked, and nothing else."""

import pytest

from apps.retrieval.highlight import highlight_lines
from apps.retrieval.marks import marked, words_of

pytestmark = pytest.mark.door


@pytest.mark.parametrize(
    ("question", "code", "expected"),
    [
        ("which timeout wins", "x = timeout", "x = <mark>timeout</mark>"),
        ("which timeout wins", "DEFAULT_TIMEOUT(1)", "<mark>DEFAULT_TIMEOUT</mark>(1)"),
        ("parsing headers", "parseHeader()", "<mark>parseHeader</mark>()"),
        ("how is the set of it", "the_set_of(it)", "the_set_of(it)"),
        ("time", "sometimes", "sometimes"),
        ("a tag", "<b>tag</b> & x", "&lt;b&gt;<mark>tag</mark>&lt;/b&gt; &amp; x"),
    ],
)
def test_names_that_share_a_word_are_marked(question: str, code: str, expected: str) -> None:
    assert marked(code, words_of(question)) == expected


def test_a_mark_is_inside_its_coloured_span() -> None:
    html = highlight_lines("def run(): return 1", path="a.py", marks=words_of("return of run"))
    assert '<span class="nf"><mark>run</mark></span>' in html[0]
    assert '<span class="k">return</span>' in html[0]
