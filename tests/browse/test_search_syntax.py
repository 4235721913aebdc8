"""The syntax of the search box."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.browse.box import Box
from apps.browse.search_tree import Node, Term, path_filter

# Text with many characters that mean something.
TYPED = st.text(alphabet='ab1_ -"\\/[]()i:{}*.\n\té漢', max_size=60)
KEYS = st.sampled_from(
    [
        "file:",
        "lang:",
        "repo:",
        "Path:",
        '"',
        "-",
        "/",
        "-/",
        "/i",
        " OR ",
        " ( ",
        " ) ",
        "sym:",
        "case:yes",
    ]
)
PIECES = st.lists(st.one_of(TYPED, KEYS), max_size=8).map("".join)


def parsed(text: str) -> list[tuple[str, str]]:
    """Kind and text of each term; a minus before the kind of those to leave out."""
    return [(f"{'-' * t.excludes}{t.kind}", t.text) for t in Box.parse(text).terms]


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
    ("text", "hint"),
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
        ("x /(a/", "/(a/: missing ): (a. Correct it, or put it in quotes to find the text"),
        ("type:repo x", "type:repo: there is type:file only"),
        ("-case:yes x", "-case:yes: there is case:yes or case:no only"),
        ('lang: file:x "', "lang: has no value"),
        ('( "a" OR "b"', "The parentheses are not balanced"),
        ('"a" AND "b"', "AND is a word here"),
        ('"a" or "b"', "or is a word here"),
        ('"a" OR "b" )', "The parentheses are not balanced"),
    ],
)
def test_what_is_broken_is_words_and_a_hint_says_so(text: str, hint: str) -> None:
    box = Box.parse(text)
    assert any(hint in each for each in box.hints), box.hints
    assert box.of("word") or any(t.kind == "word" for t in box.terms)


# Conditions: `&` joins those of which all must hold, `|` those of which one must.
TREES = {
    "lang:go OR lang:rust": "lang:go | lang:rust",
    "retry lang:go OR lang:rust": "lang:go | lang:rust",
    'lang:go "a" OR "b"': '(lang:go & "a") | "b"',
    '( lang:go OR lang:c ) "a"': '(lang:go | lang:c) & "a"',
    '(lang:go OR lang:c) "a"': '(lang:go | lang:c) & "a"',
    '"a" OR ( "b" -"c" )': '"a" | ("b" & -"c")',
    '(("a" OR "b") -x) OR /c/': '(("a" | "b") & -x) | /c/',
    "lang:go lang:c": "(lang:go | lang:c)",
    "repo:a repo:b file:x file:y": "(repo:a | repo:b) & file:x & file:y",
    "sym:x OR content:y": "sym:x | content:y",
    # A side without conditions: the OR is a word.
    'retry OR "a"': '"a"',
    '"a" OR retry OR "b"': '"a" | "b"',
    '"a" OR': '"a"',
    # Parentheses that group nothing are words.
    'func ( "a" )': '"a"',
    'f("a") OR "b"': '"b"',
    '( "a" ) ( "b" OR "c" )': '"a" & ("b" | "c")',
}


def written(part: Node | Term, is_inside: bool = False) -> str:
    if isinstance(part, Term):
        return part.source
    text = (" | " if part.any else " & ").join(written(each, True) for each in part.parts)
    return f"({text})" if is_inside else text


@pytest.mark.parametrize("text", TREES)
def test_conditions(text: str) -> None:
    assert written(Box.parse(text).tree) == TREES[text]


@pytest.mark.parametrize(
    "text",
    ["retry OR timeout", "func ( a )", "(a OR b)", "f(x) OR", "( OR )", "main ( ) or (", "or"],
)
def test_without_conditions_or_and_parentheses_are_words(text: str) -> None:
    assert parsed(text) == [("word", each) for each in text.split()]


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ('"a" /b/ /c/i content:d sym:e -f', [False, False, True, True, True, True]),
        ('"a" /b/ content:d -f case:yes', [False, False, False, False]),
        ('"a" /b/ case:no', [True, True]),
    ],
)
def test_case(text: str, ignored: list[bool]) -> None:
    assert [term.ignore_case for term in Box.parse(text).conditions] == ignored


def test_a_file_name_may_be_anywhere_in_a_path() -> None:
    paths = {text: path_filter(text) for text in ("retry.py", "src/", "*.ts", "{a,b}")}
    assert paths == {"retry.py": "*retry.py*", "src/": "src/", "*.ts": "*.ts", "{a,b}": "{a,b}"}


def test_the_box_without_its_filters_and_the_text_to_rank_by() -> None:
    box = Box.parse('where lang:go is "a b" -x /c/ retry')
    assert box.rest() == 'where is "a b" -x /c/ retry'
    assert box.text == "where is a b retry"
    assert box.without(*box.conditions) == "where is retry"


def test_a_filter_between_two_slashes_stays_in_the_box() -> None:
    assert Box.parse("/ file:[ 1/").rest() == "/ file:[ 1/"


def test_filters_that_are_joined_stay_in_the_box() -> None:
    text = "( lang:go OR lang:c ) file:a file:b x"
    assert Box.parse(text).rest() == text
    assert Box.parse(f"{text} repo:y").rest() == text


@given(PIECES)
def test_any_text_is_parsed(text: str) -> None:
    box = Box.parse(text)
    # Nothing of the text is lost, and what is left of it means the same.
    assert re.sub(r"\s", "", "".join(t.source for t in box.terms)) == re.sub(r"\s", "", text)
    assert all(t.text.strip() for t in box.terms)
    again = Box.parse(" ".join(t.source for t in box.terms))
    assert (again.terms, again.tree) == (box.terms, box.tree)
    assert Box.parse(box.rest()).of("word") == box.of("word")


@given(st.text(alphabet='ab "\\/-:', min_size=1, max_size=30).filter(str.strip))
def test_every_text_can_be_quoted(text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parsed(f'"{escaped}"') == [("exact", text)]
