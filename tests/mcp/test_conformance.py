"""The official judges, against the real server: the conformance suite in both eras, the inspector.

A baseline lists the checks that may fail, each by the feature it is about, which we do not offer:
subscriptions to a single resource, sampling, elicitation, multi-round requests (and tasks that make
them), log notifications, headers made of arguments, and sessions of the suite's own streams. A
check that begins to pass must leave the list.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.product import Product, running
from tests.mcp.judges import HERE, PROGRAMS, node

REVISIONS = ("2026-07-28", "2025-11-25")
ERAS = ("modern", "legacy")
BESIDE = ("/mcp/chat", "/mcp/agents")

pytestmark = [
    pytest.mark.skipif(
        not (PROGRAMS / "node").exists() and os.environ.get("CI") != "true",
        reason="the judges are not installed: make conformance",
    ),
    pytest.mark.door,
]


# One view serves all endpoints: those beside /mcp are judged by one revision each.
@pytest.mark.parametrize(
    ("endpoint", "revision"),
    [*(("/mcp", revision) for revision in REVISIONS), *zip(BESIDE, REVISIONS, strict=True)],
)
def test_only_scenarios_of_missing_features_fail(
    served: Product, tmp_path: Path, revision: str, endpoint: str
) -> None:
    baseline = HERE / f"conformance-{revision}.yml"
    done = node(
        "conformance",
        *("server", "--url", f"{served.url}{endpoint}", "--requirements", revision),
        *("--expected-failures", str(baseline), "-o", str(tmp_path / "out")),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr + served.log()
    assert "Baseline check passed" in done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product without the suite's tools, in its default environment."""
    with running(tmp_path_factory.mktemp("plain")) as product:
        yield product


def inspect(
    served: Product, folder: Path, protocol: str, *arguments: str, endpoint: str = "/mcp"
) -> Any:
    server = (f"{served.url}{endpoint}", "--transport", "http", "--protocol-era", protocol)
    done = node("mcp-inspector", "--cli", *server, *arguments, cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("endpoint", "tool", "protocol"),
    [
        ("/mcp", "VectorSearch", "modern"),
        ("/mcp", "VectorSearch", "legacy"),
        ("/mcp/chat", "codebase_question", "modern"),
        ("/mcp/agents", "run_command", "legacy"),
    ],
)
def test_the_inspector_finds_no_problem_in_the_tools_and_their_schemas(
    plain: Product, tmp_path: Path, endpoint: str, tool: str, protocol: str
) -> None:
    server = (f"{plain.url}{endpoint}", "--transport", "http", "--protocol-era", protocol)
    listing = ("--method", "tools/list", "--strict", "--format", "json")
    done = node("mcp-inspector", "--cli", *server, *listing, cwd=tmp_path)
    # Each problem of a schema, also one that is only a warning, is a line there.
    assert (done.returncode, done.stderr.strip()) == (0, "")
    found = json.loads(done.stdout)
    assert tool in {tool["name"] for tool in found["result"]["tools"]}


@pytest.mark.parametrize("protocol", ERAS)
def test_the_inspector_lists_resources_and_prompts(
    plain: Product, tmp_path: Path, protocol: str
) -> None:
    for method, key, count in (
        ("resources/list", "resources", 0),
        ("resources/templates/list", "resourceTemplates", 2),
        ("prompts/list", "prompts", 3),
    ):
        code, found = inspect(plain, tmp_path, protocol, "--method", method, "--format", "json")
        assert (code, len(found["result"][key])) == (0, count)
    trace = ("--prompt-name", "trace", "--prompt-args", "from=main", "to=save")
    arguments = ("--method", "prompts/get", *trace, "--format", "json")
    code, found = inspect(plain, tmp_path, protocol, *arguments)
    assert code == 0
    assert "'main'" in found["result"]["messages"][0]["content"]["text"]


@pytest.mark.parametrize("protocol", ERAS)
def test_the_inspector_calls_a_tool_and_shows_its_failure(
    served: Product, tmp_path: Path, protocol: str
) -> None:
    listing = ("--method", "tools/call", "--tool-name", "ListIngestedRepositories")
    code, found = inspect(served, tmp_path, protocol, *listing, "--format", "json")
    assert (code, found["result"]["structuredContent"]["repos"]) == (0, [])
    search = ("--method", "tools/call", "--tool-name", "VectorSearch", "--format", "json")
    code, found = inspect(served, tmp_path, protocol, *search, "--tool-args-json", '{"query": "x"}')
    assert code == 5
    assert "INGEST_REQUIRED" in json.dumps(found)
