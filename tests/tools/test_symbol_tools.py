"""The symbol tools of a model."""

import logging
from pathlib import Path

import pytest

from apps.core.errors import InvalidInput, NotFound
from apps.tools.file_outline import FILE_OUTLINE
from apps.tools.find_definitions import FIND_DEFINITIONS
from apps.tools.find_references import FIND_REFERENCES
from apps.tools.standing import standing
from tests.lookup.symbols.conftest import Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]

NAMED = {"name", "repository", "path", "language", "limit", "cursor"}


def test_tool_schemas_match_the_endpoints() -> None:
    for tool, more in ((FIND_DEFINITIONS, set()), (FIND_REFERENCES, {"kind"})):
        assert set(tool.parameters["properties"]) == NAMED | more
        assert tool.parameters["required"] == ["name"]
    assert FILE_OUTLINE.parameters["required"] == ["repository", "path"]


@pytest.mark.door
def test_a_tool_returns_what_the_endpoint_returns(harbour: Path, post: Post) -> None:
    arguments = {"name": "Ship", "repository": ["harbour"], "language": "python", "limit": 3}
    definitions, references, outline = map(
        standing, (FIND_DEFINITIONS, FIND_REFERENCES, FILE_OUTLINE)
    )
    assert definitions.run(arguments) == post("symbol-definitions", **arguments)[1]
    assert references.run(arguments) == post("symbol-references", **arguments)[1]
    file = {"repository": "quay", "path": "main.go"}
    assert outline.run(file) == post("file-outline", **file)[1]
    wrong_case = {"name": "SHIP"}
    found = post("symbol-references", **wrong_case)[1]
    assert found == references.run(wrong_case) and "There is Ship, in" in found["hint"]


def test_errors_are_typed_and_list_valid_ids(harbour: Path) -> None:
    with pytest.raises(NotFound, match="Known ids: 'harbour', 'quay'.$"):
        FIND_REFERENCES.run({"name": "x", "repository": "unknown"})
    with pytest.raises(InvalidInput, match="^name is required$"):
        FIND_DEFINITIONS.run({"query": "Ship"})
    with pytest.raises(NotFound, match="is not among the ingested files of quay"):
        FILE_OUTLINE.run({"repository": "quay", "path": "nowhere.go"})


def test_a_call_logs_its_size_and_never_its_name(
    harbour: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "codeinfo.tools"):
        FIND_DEFINITIONS.run({"name": "Ship", "path": "web/"})
        FIND_REFERENCES.run({"name": "Ship", "repository": "quay"})
        FILE_OUTLINE.run({"repository": "quay", "path": "main.go"})
    calls = [r.context for r in caplog.records if r.getMessage() == "chat tool usage"]
    assert calls == [
        {
            "tool": "FindDefinitions",
            "repository": "all",
            "limit": 20,
            "filtered": True,
            "results": 1,
        },
        {"tool": "FindReferences", "repository": "quay", "limit": 20, "results": 3},
        {"tool": "FileOutline", "repository": "quay", "results": 3},
    ]
