"""Lines of notebooks at the door of MCP."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.mcp.speech import ask
from tests.support.ingested import ingested_once
from tests.support.notebooks import FILES, line_of

pytestmark = [pytest.mark.django_db, pytest.mark.door]

CHURN: dict[str, Any] = {"repository": "books", "path": "churn.ipynb"}
CALLS: dict[str, dict[str, Any]] = {
    "Context": {"question": "How is churn_probability computed?"},
    "VectorSearch": {"query": "probability that a customer leaves"},
    "FindDefinitions": {"name": "churn_probability"},
    "FindReferences": {"name": "churn_probability", "path": "churn.ipynb"},
    "FindCallers": {"name": "churn_probability"},
    "FileOutline": CHURN,
    "Grep": {"pattern": "def churn_probability", "context": 1},
    "ReadFile": CHURN,
    "RelatedCode": {"repository": "books", "path": "packed.ipynb", "start_line": 1},
}


@pytest.fixture(scope="module", autouse=True)
def books(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("notebooks")))
    with ingested_once(django_db_blocker, base, {"books": FILES}):
        yield


async def answer(tool: str, /, **arguments: Any) -> dict[str, Any]:
    result = (await ask("tools/call", {"name": tool, "arguments": arguments})).result
    content: dict[str, Any] = result["structuredContent"]
    return content


@pytest.mark.parametrize("form", ["compact", "full"])
@pytest.mark.parametrize("name", CALLS)
async def test_cells_are_in_the_schema(name: str, form: str) -> None:
    listed = (await ask("tools/list")).result["tools"]
    (schema,) = [tool["outputSchema"] for tool in listed if tool["name"] == name]
    content = await answer(name, **CALLS[name], format=form)
    jsonschema.validate(content, schema)
    assert content.get("results") or content.get("symbols") or content.get("text")


async def test_the_compact_forms_name_the_cell() -> None:
    line = line_of("churn.ipynb", "def churn_probability")
    (row,) = (await answer("FindDefinitions", name="churn_probability"))["results"]
    assert (row["lines"], row["cell"], row["cellLine"]) == (f"{line}-{line + 2}", 2, 6)
    (file,) = (await answer("Grep", pattern="def churn_probability"))["results"]
    assert file["matches"][0].endswith("(cell 2)")
    symbols = (await answer("FileOutline", **CHURN))["symbols"]
    assert f"  {line}-{line + 2} function def churn_probability(frame) (cell 2)" in symbols
    text = (await answer("ReadFile", **CHURN, lines="cell 2"))["text"]
    assert text[0].endswith("# %% 2") and f"{line}: def churn_probability(frame):" in text
    packed = await answer("ReadFile", repository="books", path="packed.ipynb")
    assert "1: def packed_total(rows):" in packed["text"]
