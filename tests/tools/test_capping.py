"""Outputs are cut to a number of characters, at the end of a row."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tools.capping import FULL, MAX_FULL, capped
from apps.tools.grep import GREP

ROW = st.fixed_dictionaries(
    {"hostPath": st.sampled_from(["/a", "/b"]), "chunk": st.text(max_size=40)}
)
SYMBOL: Any = st.recursive(
    st.fixed_dictionaries({"name": st.text(max_size=10)}),
    lambda inner: st.fixed_dictionaries(
        {"name": st.text(max_size=10), "children": st.lists(inner, min_size=1, max_size=4)}
    ),
    max_leaves=12,
)


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def flat(symbols: list[dict[str, Any]]) -> list[str]:
    return [
        name for symbol in symbols for name in (symbol["name"], *flat(symbol.get("children", [])))
    ]


@given(st.lists(ROW, max_size=12), st.integers(120, 900))
def test_the_first_rows_and_their_files_stay(rows: list[Any], limit: int) -> None:
    files = [{"hostPath": path} for path in sorted({row["hostPath"] for row in rows})]
    output = {"results": rows, "modelId": "m", "files": files}
    cut = capped(output, limit)
    assert size(cut) <= limit
    if size(output) <= limit:
        assert cut == output
    else:
        assert cut["truncated"] is True
        assert cut["results"] == rows[: len(cut["results"])] != rows
        assert {file["hostPath"] for file in cut["files"]} == {
            row["hostPath"] for row in cut["results"]
        }


@given(st.lists(SYMBOL, max_size=6), st.integers(60, 500))
def test_the_first_symbols_stay(symbols: list[Any], limit: int) -> None:
    output = {"repo": "r", "symbols": symbols}
    cut = capped(output, limit)
    assert size(cut) <= limit
    names = flat(symbols)
    assert flat(cut["symbols"]) == names[: len(flat(cut["symbols"]))]
    assert ("truncated" in cut) == (size(output) > limit)


@pytest.mark.parametrize("output", [{"answer": "x" * 100}, {"results": []}])
def test_an_output_without_rows_stays(output: dict[str, Any]) -> None:
    assert capped(output, 200) == output


def test_the_full_form_beside_a_compact_one_is_limited() -> None:
    """The chat would show a longer result as a text, of which nothing can be cited."""
    rows = [{"hostPath": f"/{number}", "chunk": "x" * 300} for number in range(2_000)]
    tool = replace(GREP, function=lambda _: {"results": rows}, compact=lambda _: {"results": []})
    full = tool.run({}, is_compact=True, has_full=True)[FULL]
    assert full["truncated"] and full["results"] == rows[: len(full["results"])]
    assert 0.9 * MAX_FULL < size(full) <= MAX_FULL
