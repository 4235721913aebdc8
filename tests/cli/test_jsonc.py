"""Edits of JSON with comments."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeinfo_cli.clients.jsonc import Damaged, loads, with_member, without_member

ENTRY = {"command": "/opt/codeinfo", "args": ["mcp"]}
names = st.sampled_from(["a", "b", "mcpServers", "codeinfo", 'ü"\\', "//", "/* no */", ","])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text('a,:{}[]"\\/*\n é', max_size=6)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
servers = st.dictionaries(names, values, max_size=3)
documents = st.builds(
    lambda document, found: document if found is None else document | {"mcpServers": found},
    st.dictionaries(names.filter(lambda name: name != "mcpServers"), values, max_size=3),
    st.none() | servers,
)
blanks = st.sampled_from(
    ["", " ", "\n", "\n  ", "\t", "\r\n", " // c,{}\n", "/* c\n} */", "\n\n  /* x */ // y\n"]
)


@st.composite
def texts(draw: Any) -> tuple[str, dict[str, Any]]:
    """A document written with random blanks, comments and trailing commas, and its value."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            pairs = [
                f"{draw(blanks)}{json.dumps(key)}{draw(blanks)}:{draw(blanks)}{written(one)}{draw(blanks)}"
                for key, one in value.items()
            ]
            return "{" + joined(pairs) + "}"
        if isinstance(value, list):
            return "[" + joined([f"{draw(blanks)}{written(one)}" for one in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def joined(parts: list[str]) -> str:
        trailing = "," if parts and draw(st.booleans()) else ""
        return ",".join(parts) + trailing + draw(blanks)

    document = draw(documents)
    return draw(blanks) + written(document) + draw(blanks), document


COMMENT = re.compile(r"// [cy][,{}]*|/\* (?:c\n\}|x) \*/")


@given(texts())
def test_only_our_entry_differs(made: tuple[str, dict[str, Any]]) -> None:
    text, document = made
    assert loads(text) == document
    added = with_member(text, "mcpServers", "codeinfo", ENTRY)
    others = document.get("mcpServers", {})
    assert loads(added) == document | {"mcpServers": others | {"codeinfo": ENTRY}}
    if "codeinfo" not in others:
        assert COMMENT.findall(added) == COMMENT.findall(text)
        # What was there is there, in order: nothing but insertions.
        rest = iter("".join(added.split()))
        assert all(character in rest for character in "".join(text.split()))
    removed = without_member(added, "mcpServers", "codeinfo")
    left = {name: value for name, value in others.items() if name != "codeinfo"}
    assert loads(removed) == document | {"mcpServers": left}
    assert without_member(removed, "mcpServers", "codeinfo") == removed


@given(st.text('{}[]:,"\\/* \n1tnull', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = loads(text)
    except Damaged:
        return
    assert isinstance(value, dict)


EXAMPLES = [
    ("", '{\n  "mcpServers": {\n    "codeinfo": 1\n  }\n}\n'),
    ("{}\n", '{\n  "mcpServers": {\n    "codeinfo": 1\n  }\n}\n'),
    (
        '{\n\t"a": 1, // first\n\t"mcpServers": {\n\t\t"b": {} // ours\n\t}\n}',
        '{\n\t"a": 1, // first\n\t"mcpServers": {\n\t\t"b": {}, // ours\n\t\t"codeinfo": 1\n\t}\n}',
    ),
    (
        '{\r\n    "mcpServers": {\r\n        "b": {},\r\n    },\r\n}\r\n',
        '{\r\n    "mcpServers": {\r\n        "b": {},\r\n        "codeinfo": 1,\r\n    },\r\n}\r\n',
    ),
    ('{"mcpServers": {"b": 2}}', '{"mcpServers": {"b": 2, "codeinfo": 1}}'),
    ('{"mcpServers":{"codeinfo":{"old":[1]},"b":2}}', '{"mcpServers":{"codeinfo":1,"b":2}}'),
    ("// mine\n", '// mine\n{\n  "mcpServers": {\n    "codeinfo": 1\n  }\n}\n'),
]


@pytest.mark.parametrize(("before", "after"), EXAMPLES)
def test_the_style_of_the_file_is_kept(before: str, after: str) -> None:
    assert with_member(before, "mcpServers", "codeinfo", 1) == after


@pytest.mark.parametrize("text", ["[]", "{", '{"a" 1}', '{"a": 01}', '{"mcpServers": []}', "{} x"])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(Damaged):
        with_member(text, "mcpServers", "codeinfo", 1)


def test_a_text_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(Damaged, match="line 1: it is nested too deep"):
        loads('{"a":' + "[" * 5_000)
