"""The tools of /mcp, each on a real repository: what they answer is what their schemas say."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from apps.index.models import IngestRun
from apps.ingest import services
from apps.mcp.search import SEARCH
from tests.mcp.speech import STATELESS, ask, call
from tests.support.ingested import ingest_sample

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

CALLS: dict[str, dict[str, Any]] = {
    "ListIngestedRepositories": {},
    "VectorSearch": {"query": "How long does a retry wait?"},
    "FindDefinitions": {"name": "should_retry"},
    "FindReferences": {"name": "attempt"},
    "FileOutline": {"repository": "lighthouse", "path": "src/retry.py"},
}


@pytest.fixture
def lighthouse(folder: Path, transactional_db: None) -> None:
    ingest_sample(folder)


def test_every_reading_tool_has_a_call_here() -> None:
    tools = {tool.name for tool in SEARCH.registry()}
    assert tools == {*CALLS, "reingest_repository"}


@pytest.mark.door
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("lighthouse")
async def test_a_result_is_as_its_schema_says(name: str) -> None:
    listed = (await ask("tools/list")).result["tools"]
    (tool,) = [tool for tool in listed if tool["name"] == name]
    assert tool["title"] != name
    params = {"name": name, "arguments": CALLS[name]}
    answer = (await ask("tools/call", params)).result["structuredContent"]
    schema = tool["outputSchema"]
    assert schema["required"]
    jsonschema.validate(answer, schema)
    # Nothing is answered that the schema does not tell of.
    assert set(answer) <= set(schema["properties"])
    for key, rows in answer.items():
        if isinstance(rows, list) and isinstance(rows[0], dict):
            described = set(schema["properties"][key]["items"]["properties"])
            assert all(set(row) <= described for row in rows)


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
    rows = next(key for key in ("results", "repos", "symbols") if key in whole)
    assert cut["truncated"] is True
    assert len(json.dumps(cut, ensure_ascii=False)) <= size - 10
    assert cut[rows] == whole[rows][: len(cut[rows])] or name == "FileOutline"


@pytest.mark.parametrize("name", ["FindDefinitions", "FindReferences"])
@pytest.mark.usefixtures("lighthouse")
async def test_an_empty_result_is_a_success_with_a_hint(name: str) -> None:
    answer = (await call(name, STATELESS, name="nowhere_to_be_found")).result
    assert not answer.get("isError")
    assert answer["structuredContent"]["results"] == []
    assert "leave out `repository`" in answer["structuredContent"]["hint"]


@pytest.mark.usefixtures("lighthouse")
async def test_a_repository_under_ingest_is_listed_with_its_state(folder: Path) -> None:
    await asyncio.to_thread(services.reembed, str(folder))
    answer = (await call("ListIngestedRepositories")).result["structuredContent"]
    assert answer["repos"][0]["state"] == "queued"
    await IngestRun.objects.live().aupdate(state="cancelled", slot=None)
