"""Which lines match: as the regular expressions of Python match each line by itself."""

import re
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.errors import InvalidInput
from apps.lookup.texts import matching
from apps.lookup.texts.patterns import Pattern, identifiers

PIECES = ["a", "b", "ab", r"\w", r"\s", ".", "[ab]", "[^a]", "^", "$", r"\b", "_", " ", r"\.", ""]
TREE = st.recursive(
    st.sampled_from(PIECES),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{0,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)
TEXT = st.text(alphabet="ab_ .\n\tA", max_size=40)


def own_lines(pattern: Pattern, text: str) -> list[int]:
    data = text.encode()
    return [data.count(b"\n", 0, each.start) for each in pattern.compiled().matches(data)]


@settings(max_examples=500)
@given(TREE, TEXT, st.booleans())
def test_lines_match_as_each_does_by_itself(pattern: str, text: str, ignore_case: bool) -> None:
    oracle = re.compile(pattern, re.ASCII | (re.IGNORECASE if ignore_case else 0))
    lines = text.split("\n") if text else []
    expected = [number for number, line in enumerate(lines) if oracle.search(line)]
    assert own_lines(Pattern(pattern, ignore_case=ignore_case), text) == expected


@settings(max_examples=300)
@given(
    st.sampled_from(["ab.*ba", r"^\s*bb\s+aa", "aab|bba", r"ab\w*_bb"]),
    st.lists(st.text(alphabet="ab_ ", max_size=9), max_size=30),
    st.integers(0, 3),
)
def test_texts_that_many_lines_have_lose_no_line(pattern: str, lines: list[str], few: int) -> None:
    with patch.multiple(matching, FEW_LINES=few, BYTES_A_LINE=20):
        found = own_lines(Pattern(pattern), "\n".join(lines))
    assert found == [n for n, line in enumerate(lines) if re.search(pattern, line)]


@settings(max_examples=500)
@given(
    st.one_of(TREE, st.sampled_from([r"\Aab", r"b\z", "(?-m:^)ab", r"a[^x]*b", r"ab\s+ba"])),
    st.lists(TEXT.filter(bool), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_no_text_that_matches_is_lost_when_all_are_looked_through_at_once(
    pattern: str, texts: list[str], word: bool, multiline: bool
) -> None:
    matcher = Pattern(pattern, word=word, multiline=multiline).compiled()
    datas = [text.encode() for text in texts]
    likely = list(matcher.likely(datas))
    matching = {number for number, data in enumerate(datas) if next(matcher.matches(data), None)}
    assert likely == sorted(set(likely)) and matching <= set(likely)
    if not multiline and not pattern.startswith(("\\A", "(?-")) and "z" not in pattern:
        assert matching == set(likely), "no text is read twice for nothing"


@settings(max_examples=200)
@given(st.text(alphabet="ab_.", min_size=1, max_size=3), TEXT)
def test_words_have_no_letter_on_either_side(word: str, text: str) -> None:
    oracle = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.ASCII)
    lines = text.split("\n") if text else []
    expected = [number for number, line in enumerate(lines) if oracle.search(line)]
    assert own_lines(Pattern(word, fixed=True, word=True), text) == expected


@settings(max_examples=200)
@given(st.text(alphabet="abA. \t", min_size=1, max_size=4), TEXT, st.booleans())
def test_fixed_text_is_found_as_it_is(fixed: str, text: str, ignore_case: bool) -> None:
    def cased(line: str) -> str:
        return line.lower() if ignore_case else line

    lines = text.split("\n") if text else []
    expected = [number for number, line in enumerate(lines) if cased(fixed) in cased(line)]
    assert own_lines(Pattern(fixed, fixed=True, ignore_case=ignore_case), text) == expected


@pytest.mark.parametrize(
    ("pattern", "spans"),
    [
        ("a\nb", [(0, 1)]),
        (r"(?s)a.*c", [(0, 2)]),
        (r"b\s+c", [(1, 2)]),
        ("x|c", [(2, 2), (4, 4)]),
        (r"c\n+x\n?", [(2, 4)]),
        (r"^$", [(3, 3)]),
    ],
)
def test_a_match_may_span_lines(pattern: str, spans: list[tuple[int, int]]) -> None:
    data = b"a\nb\nc\n\nx"
    found = Pattern(pattern, multiline=True).compiled().matches(data)
    assert [(data.count(b"\n", 0, m.start), data.count(b"\n", 0, m.end)) for m in found] == spans


def test_brackets_that_only_a_wrapping_would_complete_are_refused() -> None:
    for pattern in ("a)(b", "a)|(b", ")("):
        for word in (False, True):
            with pytest.raises(InvalidInput):
                Pattern(pattern, word=word).compiled()


def test_identifiers_are_those_of_three_letters_longest_first() -> None:
    assert identifiers(["def run", "uv__io_poll(", "1ab"]) == ["uv__io_poll", "def", "run"]
