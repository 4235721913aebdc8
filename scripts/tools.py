"""Write what lists the tools: the manifest of the bundle, the answers of the bridge, and tables.

    python -m scripts.tools

Everything is made from the tools themselves (`apps/tools`, `apps/mcp`).
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import django
from django.conf import settings

if __name__ == "__main__":
    # The settings of the tests have a data folder of their own, and none of this machine's values.
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()

from apps.core.error_map import status_of
from apps.mcp.indexing import INDEX_REPOSITORY
from apps.mcp.search import SEARCH
from apps.tools import errors, schemas
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.tool import Tool
from apps.tools.tools import TOOLS
from codeinfo_cli.bridge.answers import TABLE
from tests.cli.capabilities import table

HOME = Path(__file__).resolve().parents[1]
MANIFEST = HOME / "release/mcpb/manifest.json"
MCP, API = HOME / "docs/mcp.md", HOME / "docs/api.md"
BEGIN, END = "<!-- The tools. `make fix` writes this table. -->", "<!-- The end of the tools. -->"
# Fields that the documents describe once for all tools, and arguments whose values they list there.
OF_ALL = {"truncated", "nextCursor", "hint", "degraded", "partial", "stale", "changedFiles", "gone"}
OF_ALL |= {"workspace"}
VALUES_BELOW = "format"
# Fields whose members docs/questions.md describes.
ELSEWHERE = frozenset({"answer"})
# What stands in the tables for the fields of a place.
PLACE, OF_PLACE = "<place>", {*schemas.PLACE, *schemas.MORE_PLACE}
OF_EVERY_TOOL = (errors.INVALID, errors.NO_REPOSITORY, errors.NOT_INGESTED)


def files() -> dict[Path, str]:
    """Each file that is generated, in whole or in part, as it should be."""
    manifest = json.loads(MANIFEST.read_text())
    manifest["tools"] = [
        {"name": tool.name, "description": tool.title} for tool in SEARCH.registry()
    ]
    return {
        TABLE: json.dumps(table(), indent=1, ensure_ascii=False) + "\n",
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        MCP: _between(MCP.read_text(), _mcp_table()),
        API: _between(API.read_text(), _api_table()),
    }


def _between(document: str, rows: Iterable[str]) -> str:
    """The text of a document with these rows between its marks."""
    head, _, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert end, "the marks of the table are lost"
    return "\n".join([f"{head}{BEGIN}\n", *rows, f"\n{END}{tail}"])


# --- the tables -----------------------------------------------------------------------------------


def _mcp_table() -> Iterator[str]:
    """Arguments and compact result of each tool of `/mcp`, also of the one that is off."""
    compact = {tool.name: tool.compact_schema or tool.output_schema for tool in TOOLS}
    yield "| tool | arguments | result |"
    yield "| --- | --- | --- |"
    for tool in (*SEARCH.registry(), INDEX_REPOSITORY):
        result = _shape(compact.get(tool.name) or tool.output_schema or {})
        yield f"| `{tool.name}` | `{_arguments(tool.input_schema)}` | `{result}` |"


def _api_table() -> Iterator[str]:
    """Each route of a tool, with its errors beyond those of all."""
    yield "| route | request | answer | errors |"
    yield "| --- | --- | --- | --- |"
    for tool in TOOLS:
        if tool.route:
            request, answer = _arguments(tool.parameters), _shape(tool.output_schema)
            route = f"`POST /tools/{tool.route}`"
            yield f"| {route} | `{request}` | `{answer}` | {_errors(tool)} |"
    answer = _shape(LIST_REPOSITORIES.output_schema)
    yield f"| `GET /tools/ingested-repos` | | `{answer}` | |"


def _errors(tool: Tool) -> str:
    """`404 FILE_NOT_FOUND; 503 TEXT_LOST`."""
    own = sorted((each for each in tool.errors if each not in OF_EVERY_TOOL), key=status_of)
    return "; ".join(
        f"{status} {', '.join(f'`{each.code}`' for each in group)}"
        for status, group in groupby(own, status_of)
    )


# --- JSON Schemas in short ------------------------------------------------------------------------


def _arguments(schema: Mapping[str, Any]) -> str:
    """`{query,repository?,limit? 1–20 (5)}`."""
    required = schema.get("required", ())
    members = (
        f"{name}{'' if name in required else '?'}{'' if name == VALUES_BELOW else _range(each)}"
        for name, each in schema["properties"].items()
    )
    return "{" + ",".join(members) + "}"


def _range(schema: Mapping[str, Any]) -> str:
    """` 1–20 (5)`, ` content, files or count`, or "" for any value."""
    if "enum" in schema:
        *most, last = schema["enum"]
        return f" {', '.join(most)} or {last}"
    if "maximum" not in schema:
        return ""
    default = f" ({schema['default']:,})" if "default" in schema else ""
    return f" {schema['minimum']:,}–{schema['maximum']:,}{default}"


def _shape(schema: Mapping[str, Any]) -> str:
    """`{results:[{repo,relPath,score}],modelId,files?}`; "" for a value without members."""
    if "anyOf" in schema:
        return next(filter(None, map(_shape, schema["anyOf"])), "")
    if schema.get("type") == "array":
        inner = _shape(schema["items"])
        return f"[{inner}]" if inner else ""
    return "{" + ",".join(_members(schema)) + "}" if schema.get("properties") else ""


def _members(schema: Mapping[str, Any]) -> Iterator[str]:
    has_place = schema["properties"].keys() >= OF_PLACE
    if has_place:
        yield PLACE
    for name, each in schema["properties"].items():
        if name not in OF_ALL and not (has_place and name in OF_PLACE):
            inner = "" if name in ELSEWHERE else _shape(each)
            mark = "" if name in schema.get("required", ()) else "?"
            yield f"{name}{mark}{f':{inner}' if inner else ''}"


if __name__ == "__main__":
    try:
        for file, text in files().items():
            file.write_text(text)
    finally:
        shutil.rmtree(settings.DATA_DIR)
