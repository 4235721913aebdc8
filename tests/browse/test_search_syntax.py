"""The syntax of the search box."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.browse.box import Box
from apps.core.errors import InvalidInput

# Text with many characters that mean something.
TYPED = st.text(alphabet='ab1_ -"\\/[]i:{}*.\n\té漢', max_size=60)
KEYS = st.sampled_from(["file:", "lang:", "repo:", "Path:", '"', "-", "/", "-/", "/i", " "])
PIECES = st.lists(st.one_of(TYPED, KEYS), max_size=8).map("".join)


def parsed(text: str) -> list[tuple[str, str]]:
    """Kind and text of each term; a minus before the kind of those to leave out."""
    return [(f"{'-' * t.excludes}{t.kind}", t.text) for t in Box.parse(text).terms]


def problems(text: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        Box.parse(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("retry timeout", [("word", "retry"), ("word", "timeout")]),
        ("lang:go file:src/ repo:api", [("lang", "go"), ("file", "src/"), ("repo", "api")]),
        ("Language:go PATH:*.ts", [("lang", "go"), ("file", "*.ts")]),
        ('repo:"my repo" file:"a b/"', [("repo", "my repo"), ("file", "a b/")]),
        ('"a b" -"c"', [("exact", "a b"), ("-exact", "c")]),
        (r'"say \"x\\y\" \n"', [("exact", r'say "x\y" \n')]),
        ("-file:a/ -LANG:go -repo:x", [("-file", "a/"), ("-lang", "go"), ("-repo", "x")]),
        ("-test -_x", [("-word", "test"), ("-word", "_x")]),
        ("/a b/ -/c/i", [("expression", "a b"), ("-expression", "c")]),
        (r"/a\/b[/c]\d/", [("expression", r"a/b[/c]\d")]),
    ],
)
def test_terms(text: str, terms: list[tuple[str, str]]) -> None:
    # A term to leave out needs one to look for.
    alone = all(kind.startswith("-") for kind, _ in terms)
    assert parsed(f"{text} x" if alone else text) == terms + [("word", "x")] * alone


@pytest.mark.parametrize(
    "text",
    [
        "std::vector",
        "http://host/path",
        "localhost:8080",
        "retry.py:12",
        "error:",
        "/usr/lib",
        "/ui/chat/send",
        "//",
        "->",
        "-1",
        "--flag",
        'f("a")',
        "don't",
        "a-b",
    ],
)
def test_code_and_paths_are_words(text: str) -> None:
    assert parsed(text) == [("word", text)]


def test_slashes_around_nothing_are_words() -> None:
    assert parsed("a / / b") == [("word", each) for each in ("a", "/", "/", "b")]


def test_an_expression_may_ignore_case() -> None:
    assert [t.ignore_case for t in Box.parse("/a/ /b/i").terms] == [False, True]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('x "abc', '"abc: the quote is not closed'),
        ('file:"abc', 'file:"abc: the quote is not closed'),
        ("lang:", "lang: has no value. Write it as in lang:python"),
        ("repo: flask", "repo: has no value"),
        ("-file: y", "file: has no value"),
        ("author:me x", "author:me: there is no filter author:"),
        ("x -ext:py", "-ext:py: there is no filter ext:"),
        ("/re[gt/ x", "/re[gt/: this is no whole expression"),
        ("x /raise.*/g", "/raise.*/g: this is no whole expression"),
        ("/a+ x", "/a+: this is no whole expression"),
        ("lang:go lang:c x", "lang: can be given once"),
        ("file:a file:b x", "file: can be given once. For either of several, use braces"),
        ("-a lang:go", "there is nothing to search for"),
        ('"a" ' * 17, "at most 16 texts"),
        ('lang: -file:x "', "lang: has no value"),
    ],
)
def test_problems_are_named(text: str, problem: str) -> None:
    assert problem in problems(text)


def test_a_file_name_may_be_anywhere_in_a_path() -> None:
    paths = {text: Box.parse(f"file:{text}").path for text in ("retry.py", "src/", "*.ts", "{a,b}")}
    assert paths == {"retry.py": "*retry.py*", "src/": "src/", "*.ts": "*.ts", "{a,b}": "{a,b}"}


def test_the_box_without_its_filters_and_the_text_to_rank_by() -> None:
    box = Box.parse('where lang:go is "a b" -x /c/ retry')
    assert box.rest == 'where is "a b" -x /c/ retry'
    assert box.text == "where is a b retry"
    assert box.without(*box.conditions) == "where lang:go is retry"


def test_a_filter_between_two_slashes_stays_in_the_box() -> None:
    assert Box.parse("/ file:[ 1/").rest == "/ file:[ 1/"


@given(PIECES)
def test_any_text_is_parsed_or_refused_by_name(text: str) -> None:
    try:
        box = Box.parse(text)
    except InvalidInput as error:
        assert error.details["details"]
        return
    # Nothing of the text is lost, and what is left of it means the same.
    assert re.sub(r"\s", "", "".join(t.source for t in box.terms)) == re.sub(r"\s", "", text)
    assert all(t.text.strip() for t in box.terms)
    assert Box.parse(" ".join(t.source for t in box.terms)) == box
    assert Box.parse(box.rest).of("word") == box.of("word")


@given(st.text(alphabet='ab "\\/-:', min_size=1, max_size=30).filter(str.strip))
def test_every_text_can_be_quoted(text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parsed(f'"{escaped}"') == [("exact", text)]
