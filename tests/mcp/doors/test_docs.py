"""docs/mcp.md: its Python runs, and it tells of every tool, word and check."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps.mcp.agents import AGENTS
from apps.mcp.chat import CHAT
from apps.mcp.failures import HINTS, RPC_CODES
from apps.mcp.search import SEARCH
from tests.browser.product import running
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into

TOOLS = [tool for endpoint in (CHAT, SEARCH, AGENTS) for tool in endpoint.registry()]
DOC = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```", DOC, re.M | re.S)
WORDS = [*HINTS, *RPC_CODES, "PROVIDER_UNAVAILABLE", "PROVIDER_ERROR", "REPO_NOT_FOUND"]


@pytest.mark.door
def test_the_python_example_of_the_document_runs(tmp_path: Path) -> None:
    (snippet,) = SNIPPETS
    with running(tmp_path, CODEINFO_MCP_PROVIDER="builtin") as product:
        ingest_into(product, write_files(product.repos / "repo", SAMPLE))
        base, _, port = product.url.rpartition(":")
        here = snippet.replace("http://127.0.0.1:5010", product.url)
        here = here.replace("http://127.0.0.1:5011", f"{base}:{int(port) + 1}")
        done = subprocess.run(
            [sys.executable, "-c", here], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "repo/src/retry.py:" in done.stdout
    assert len(re.findall("fits? best:", done.stdout)) == 2


@pytest.mark.parametrize("name", [*(tool.name for tool in TOOLS), *WORDS])
def test_every_tool_and_error_code_is_documented(name: str) -> None:
    assert f"`{name}`" in DOC


def test_the_tables_of_tools_have_each_tool_and_its_arguments() -> None:
    """`codebase_question` has a section of its own."""
    rows = re.findall(r"^\| `(\w+)` \| (?:`\{(.*?)\}` )?\|", DOC, re.M)
    listed = {name: set(re.findall(r"(?:^|,)([a-z]\w+)", arguments)) for name, arguments in rows}
    tools = {tool.name: set(tool.input_schema["properties"]) for tool in TOOLS}
    del tools["codebase_question"]
    assert {name: listed.get(name) for name in tools} == tools


def test_the_endpoints_table_has_each_tool() -> None:
    """Those of /mcp have a table of their own."""
    table = re.findall(r"^\| `/mcp.*$", DOC, re.M)[:3]
    for endpoint in (CHAT, AGENTS):
        for tool in endpoint.registry():
            assert any(f"`{tool.name}`" in row for row in table), tool.name


def test_the_section_of_tasks_names_each_tool_that_takes_long() -> None:
    section = DOC.partition("### Tasks\n")[2].partition("\n## ")[0]
    for tool in TOOLS:
        assert (f"`{tool.name}`" in section) is tool.takes_long, tool.name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda t: t.name)
def test_every_argument_and_result_is_documented(tool) -> None:
    assert tool.output_schema is not None
    for name in (*tool.input_schema["properties"], *tool.output_schema["properties"]):
        assert re.search(rf"\b{name}\b", DOC), name
