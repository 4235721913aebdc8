"""The tools of /mcp, each on a real repository: what they answer is what their schemas say."""

import asyncio
import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from apps.index.models import IngestRun
from apps.ingest import services
from apps.mcp.search import SEARCH
from tests.mcp.speech import STATELESS, ask, call
from tests.support.calls import CALLS
from tests.support.compact_rows import rows_of
from tests.support.git import commit_all, init
from tests.support.ingested import CALLER, SAMPLE, ingest_sample, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


@pytest.fixture
def lighthouse(folder: Path, transactional_db: None) -> None:
    files = CALLER | SAMPLE
    before = files["src/retry.py"].replace("attempt < self", "attempt <= self")
    write_files(init(folder), files | {"src/retry.py": before})
    commit_all(folder)
    ingest_sample(write_files(folder, files))


def test_every_tool_has_a_call_that_all_tests_make() -> None:
    """If this fails: add it to tests/support/calls.py."""
    tools = {tool.name for tool in SEARCH.registry()}
    assert tools == {*CALLS, "reingest_repository"}


@pytest.mark.door
@pytest.mark.parametrize("form", ["compact", "full"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("lighthouse")
async def test_a_result_is_as_its_schema_says(name: str, form: str) -> None:
    listed = (await ask("tools/list")).result["tools"]
    (tool,) = [tool for tool in listed if tool["name"] == name]
    assert tool["title"] != name
    params = {"name": name, "arguments": CALLS[name] | {"format": form}}
    answer = (await ask("tools/call", params)).result["structuredContent"]
    schema = tool["outputSchema"]
    assert schema["required"]
    jsonschema.validate(answer, schema)
    # Nothing is answered that the schema does not tell of.
    assert set(answer) <= set(schema["properties"])
    for key, rows in answer.items():
        if isinstance(rows, list) and isinstance(rows[0], dict):
            item = schema["properties"][key]["items"]
            described = {
                name for one in item.get("anyOf", [item]) for name in one.get("properties", ())
            }
            assert all(set(row) <= described for row in rows)


# What a row says.
PLACE = ("repo", "relPath", "startLine", "endLine", "chunk")


@pytest.mark.parametrize(
    "name",
    [
        *["VectorSearch", "FindDefinitions", "FindReferences", "FindCallers", "FindImports"],
        *["Grep", "ReadFile"],
    ],
)
@pytest.mark.usefixtures("lighthouse")
async def test_the_compact_form_says_what_the_full_form_says(name: str) -> None:
    outputs = {}
    for form in ("compact", "full"):
        params = {"name": name, "arguments": CALLS[name] | {"format": form}}
        outputs[form] = (await ask("tools/call", params)).result["structuredContent"]
    size = {form: len(json.dumps(output)) for form, output in outputs.items()}
    assert size["compact"] < 0.8 * size["full"]
    compact = rows_of(outputs["compact"])
    full = outputs["full"]["results"]
    assert len(compact) == len(full) > 0
    key = operator.itemgetter("relPath", "startLine")
    for one, other in zip(sorted(compact, key=key), sorted(full, key=key), strict=True):
        if "score" in other:
            assert abs(one["score"] - other["score"]) <= 0.0005
        for field in PLACE:
            assert one[field] == other[field]
        assert (one.get("symbol") or "") == (other.get("symbol") or "")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Grep", {"pattern": "retry", "mode": "count"}), ("ListFiles", {"path": "*.py"})],
)
@pytest.mark.usefixtures("lighthouse")
async def test_compact_files_are_those_of_the_full_form(
    name: str, arguments: dict[str, Any]
) -> None:
    outputs = {}
    for form in ("compact", "full"):
        params = {"name": name, "arguments": arguments | {"format": form}}
        outputs[form] = (await ask("tools/call", params)).result["structuredContent"]
    compact = rows_of(outputs["compact"])
    full = outputs["full"]["results"]
    fields = ("repo", "relPath", "kind", "count")
    assert full and [[row.get(f) for f in fields] for row in compact] == [
        [row.get(f) for f in fields] for row in full
    ]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("lighthouse")
async def test_codex_gets_the_full_form_beside_the_compact_one(name: str) -> None:
    """The page shows it: `_meta` costs no tokens."""
    params = {"name": name, "arguments": CALLS[name]}
    address = f"/mcp?tool={name}"
    answer = (await ask("tools/call", params, path=f"{address}&full=1")).result
    compact = (await ask("tools/call", params, path=address)).result
    params["arguments"] = CALLS[name] | {"format": "full"}
    full = (await ask("tools/call", params, path=address)).result
    beside = answer["_meta"].pop("codeinfo/full")
    assert beside.pop("index", None) == full["_meta"].get("codeinfo/index")
    assert beside == full["structuredContent"]
    assert answer == compact


@pytest.mark.usefixtures("lighthouse")
async def test_the_full_form_has_the_rows_that_the_compact_one_has_room_for(
    configure: Callable[..., None],
) -> None:
    params = {"name": "Grep", "arguments": {"pattern": "retry"}}
    whole = (await ask("tools/call", params)).result["structuredContent"]
    configure(tool_max_chars=len(json.dumps(whole)) - 10)
    answer = (await ask("tools/call", params, path="/mcp?tool=Grep&full=1")).result
    compact, full = answer["structuredContent"], answer["_meta"]["codeinfo/full"]
    assert len(json.dumps(compact)) < len(json.dumps(whole)) < len(json.dumps(full))
    assert [row["startLine"] for row in rows_of(compact)] == [
        row["startLine"] for row in full["results"]
    ]
    assert compact["nextCursor"] == full["nextCursor"]


@pytest.mark.parametrize("name", ["VectorSearch", "FindDefinitions"])
@pytest.mark.usefixtures("lighthouse")
async def test_snippet_lines_cuts_passages_around_their_best_lines(name: str) -> None:
    async def rows(**arguments: Any) -> list[dict[str, Any]]:
        params = {"name": name, "arguments": {**CALLS[name], "format": "full", **arguments}}
        return (await ask("tools/call", params)).result["structuredContent"]["results"]

    source = SAMPLE["src/retry.py"].split("\n")
    for row in await rows(snippet_lines=2):
        lines = row["chunk"].split("\n")
        assert len(lines) <= 2
        if row["relPath"] == "src/retry.py":
            assert lines == source[row["startLine"] - 1 : row["endLine"]]
    assert await rows() == await rows(snippet_lines=100)


@pytest.mark.parametrize(
    "wrong", [{"format": "yaml"}, {"snippet_lines": "two"}, {"snippet_lines": [3, 4]}]
)
@pytest.mark.usefixtures("lighthouse")
async def test_wrong_forms_are_refused(wrong: dict[str, Any]) -> None:
    params = {"name": "VectorSearch", "arguments": {"query": "retry", **wrong}}
    answer = (await ask("tools/call", params)).result
    assert answer["isError"]
    assert next(iter(wrong)) in answer["content"][0]["text"]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("lighthouse")
async def test_every_output_is_cut_at_a_row_to_the_limit(
    name: str, configure: Callable[..., None]
) -> None:
    async def output() -> dict[str, Any]:
        params = {"name": name, "arguments": CALLS[name]}
        answer = (await ask("tools/call", params)).result
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
        return answer["structuredContent"]

    whole = await output()
    size = len(json.dumps(whole, ensure_ascii=False))
    configure(tool_max_chars=size - 10)
    cut = await output()
    rows = next(key for key in ("results", "repos", "symbols", "text") if key in whole)
    assert cut["truncated"] is True
    if name == "ListIngestedRepositories":  # One row of a list stays, though it is too long.
        assert cut[rows] == whole[rows]
        return
    if len(whole[rows]) == 1 and not cut[rows]:  # What it says of that may be longer than the row.
        return
    assert len(json.dumps(cut, ensure_ascii=False)) <= size - 10
    assert cut[rows] == whole[rows][: len(cut[rows])] or name in (
        *("FindReferences", "Grep", "ListFiles"),  # their rows are groups
        *("FindDefinitions", "FindCallers", "FindImports"),  # one row, shortened
    )


@pytest.mark.usefixtures("lighthouse")
async def test_a_row_that_is_longer_than_an_answer_is_shortened_and_the_answer_says_so(
    configure: Callable[..., None],
) -> None:
    configure(tool_max_chars=260)
    answer = (await call("FindDefinitions", name="RetryPolicy")).result["structuredContent"]
    (row,) = answer["results"]
    assert row["chunk"][0].startswith("class Retry") and row["chunk"][-1].endswith("…")
    assert answer["hint"].startswith("The row was shortened") and "nextCursor" not in answer


@pytest.mark.parametrize(
    ("name", "subject"),
    [("FindDefinitions", "name"), ("FindReferences", "name"), ("Grep", "pattern")],
)
@pytest.mark.usefixtures("lighthouse")
async def test_an_empty_result_is_a_success_with_a_hint(name: str, subject: str) -> None:
    answer = (await call(name, STATELESS, **{subject: "nowhere_to_be_found"})).result
    assert not answer.get("isError")
    assert answer["structuredContent"]["results"] == []
    assert "look into all repositories" in answer["structuredContent"]["hint"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            {"name": "attempt", "path": "main.txt"},
            "attempt is used elsewhere, as in lighthouse, src/retry.py:",
        ),
        ({"name": "Should_Retry"}, "There is should_retry, in lighthouse, src/retry.py:"),
        ({"name": "attempt", "path": "source/"}, "No file of the ingested repositories matches"),
    ],
)
@pytest.mark.parametrize("form", ["compact", "full"])
@pytest.mark.usefixtures("lighthouse")
async def test_references_that_find_nothing_say_what_to_try(
    arguments: dict[str, Any], hint: str, form: str
) -> None:
    params = {"name": "FindReferences", "arguments": {**arguments, "format": form}}
    answer = (await ask("tools/call", params)).result["structuredContent"]
    assert answer["results"] == []
    assert answer["hint"].startswith(hint)


@pytest.mark.usefixtures("lighthouse")
async def test_a_repository_under_ingest_is_listed_with_its_state(folder: Path) -> None:
    await asyncio.to_thread(services.reembed, str(folder))
    answer = (await call("ListIngestedRepositories")).result["structuredContent"]
    assert answer["repos"][0]["state"] == "queued"
    await IngestRun.objects.live().aupdate(state="cancelled", slot=None)


@pytest.mark.parametrize("form", ["compact", "full"])
@pytest.mark.parametrize("name", ["VectorSearch", "Context"])
@pytest.mark.usefixtures("lighthouse")
async def test_a_question_by_shape_is_answered_first_as_the_schema_says(
    name: str, form: str
) -> None:
    listed = (await ask("tools/list")).result["tools"]
    (tool,) = [tool for tool in listed if tool["name"] == name]
    key = "query" if name == "VectorSearch" else "question"
    arguments = {key: "What calls `RetryPolicy`?", "format": form}
    params = {"name": name, "arguments": arguments}
    answer = (await ask("tools/call", params)).result["structuredContent"]
    jsonschema.validate(answer, tool["outputSchema"])
    assert next(iter(answer)) == "answer"
    caller = next(row for row in answer["answer"]["rows"] if "caller" in str(row))
    assert "src/work.py" in str(caller) and "again" in str(caller)
