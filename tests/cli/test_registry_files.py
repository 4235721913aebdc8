"""The files that registries and clients read have one name, one version, one command, our tools."""

import json
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from apps.core import __version__
from apps.mcp.search import SEARCH
from apps.tools.tools import TOOLS
from release import bundle, metadata
from tests.house.sources import HOME
from tests.mcp.judges import PROGRAMS

PLUGIN = HOME / "release" / "claude-code"
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
SENTENCE = PROJECT["project"]["description"]
SKILL = PLUGIN / "skills" / "codeinfo" / "SKILL.md"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def tool_names() -> set[str]:
    return {tool.name for tool in SEARCH.registry()}


def closed(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    """The schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
SHORT = TEXT | {"maxLength": 100}
# A version, not a range and not "latest"
VERSION = {"type": "string", "pattern": r"^\d+\.\d+\.\d+[\w.+-]*$"}
# What the registry's schema of 2025-12-11 requires of the members that we use
PACKAGE = closed(
    {
        "registryType": {"const": "pypi"},
        "identifier": TEXT,
        "version": VERSION,
        "runtimeHint": TEXT,
        "transport": closed({"type": {"const": "stdio"}}),
        "packageArguments": {
            "type": "array",
            "items": closed({"type": {"const": "positional"}, "value": TEXT}),
        },
        "environmentVariables": {
            "type": "array",
            "items": closed(
                {
                    "name": TEXT,
                    "description": TEXT,
                    "format": {"enum": ["string", "number", "boolean", "filepath"]},
                },
                "format",
            ),
        },
    }
)
SERVER = closed(
    {
        "$schema": {"pattern": r"^https://\S+/schemas/2025-12-11/server\.schema\.json$"},
        # The reverse of a domain, and a name
        "name": {"pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        "title": SHORT,
        "description": SHORT,
        "version": VERSION,
        "packages": {"type": "array", "items": PACKAGE},
    }
)
AUTHOR = closed({"name": TEXT})
# claude plugin validate
NAME = {"pattern": r"^[a-z0-9]+(-[a-z0-9]+)*$"}
PLUGIN_JSON = closed(
    {
        "name": NAME,
        "version": VERSION,
        "description": TEXT,
        "author": AUTHOR,
        "license": TEXT,
        "keywords": {"type": "array", "items": TEXT},
    }
)
LISTED = closed({"name": NAME, "source": {"pattern": r"^\./"}, "description": TEXT})
MARKETPLACE = closed(
    {"name": NAME, "owner": AUTHOR, "plugins": {"type": "array", "items": LISTED, "minItems": 1}}
)
SCHEMAS = {
    "server.json": SERVER,
    ".claude-plugin/marketplace.json": MARKETPLACE,
    "release/claude-code/.claude-plugin/plugin.json": PLUGIN_JSON,
}


@pytest.mark.parametrize("file", SCHEMAS)
def test_each_file_has_the_form_that_its_registry_requires(file: str) -> None:
    jsonschema.validate(read(HOME / file), SCHEMAS[file])


@pytest.mark.door
@pytest.mark.skipif(
    not (PROGRAMS / "node").exists() and os.environ.get("CI") != "true",
    reason="the validator is not installed: make conformance",
)
def test_the_official_validator_takes_the_manifest_of_the_bundle(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    for change, status in ({}, 0), ({"server": {"type": "snake"}}, 1):
        manifest.write_text(json.dumps(read(HOME / "release/mcpb/manifest.json") | change))
        command = [PROGRAMS / "node", PROGRAMS / "mcpb", "validate", manifest]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


def test_the_text_for_the_package_index_has_the_name_of_server_json(tmp_path: Path) -> None:
    name = read(HOME / "server.json")["name"]
    assert f"<!-- mcp-name: {name} -->" in metadata.description(HOME)
    (tmp_path / "release").mkdir()
    shutil.copy(HOME / "release" / "README.md", tmp_path / "release")
    (tmp_path / "server.json").write_text('{"name": "org.example/codeinfo"}')
    text = metadata.description(tmp_path)
    assert text.startswith("# codeinfo\n\n<!-- mcp-name: org.example/codeinfo -->\n\nAsk")


def test_server_json_names_the_package_its_version_and_its_command() -> None:
    server = read(HOME / "server.json")
    (package,) = server["packages"]
    assert server["name"].split("/")[1] == server["title"] == package["identifier"] == "codeinfo"
    assert server["version"] == package["version"] == __version__
    assert server["description"] == SENTENCE and len(SENTENCE) <= 100
    assert [each["value"] for each in package["packageArguments"]] == ["mcp"]
    assert package["transport"] == {"type": "stdio"}
    assert list(PROJECT["project"]["scripts"]) == ["codeinfo"]


def test_the_plugin_for_claude_code_starts_the_command_and_has_the_skill() -> None:
    plugin = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert (plugin["name"], plugin["version"]) == ("codeinfo", __version__)
    assert plugin["description"] == SENTENCE
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    # PYTHONPATH may name the folder that is open.
    start = {"command": "codeinfo", "args": ["mcp"], "env": {"PYTHONPATH": ""}}
    assert servers == {"codeinfo": start}
    (listed,) = read(HOME / ".claude-plugin" / "marketplace.json")["plugins"]
    assert listed["name"] == "codeinfo"
    assert (HOME / listed["source"]).resolve() == PLUGIN
    head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", SKILL.read_text())
    # The limits of skills: a name of 64 characters, a description of 1,024.
    assert head and head[1] == SKILL.parent.name == "codeinfo" and len(head[2]) <= 1_024


def test_the_skill_names_tools_that_there_are() -> None:
    named = set(re.findall(r"`([A-Z]\w+|\w+_repository)`", SKILL.read_text()))
    assert {"Context", "VectorSearch"} <= named <= tool_names()


def test_the_documents_for_agents_name_tools_and_files_that_there_are() -> None:
    agents = (HOME / "AGENTS.md").read_text()
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+|Context|Grep)`", agents))
    assert named and named <= {tool.name for tool in TOOLS}
    for document in ("AGENTS.md", "llms.txt"):
        text = (HOME / document).read_text()
        assert text.startswith("# codeinfo\n") or document == "AGENTS.md"
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert (HOME / link).is_file(), (document, link)


def test_the_bundle_has_the_wheel_the_command_and_our_tools(tmp_path: Path) -> None:
    wheel = tmp_path / f"codeinfo-{__version__}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    made = bundle.write(wheel)
    assert made.name == f"codeinfo-{__version__}.mcpb"
    first = made.read_bytes()
    with zipfile.ZipFile(made) as archive:
        assert archive.read(wheel.name) == b"a wheel"
        manifest = json.loads(archive.read("manifest.json"))
        project = tomllib.loads(archive.read("pyproject.toml").decode())
        start = archive.read(manifest["server"]["entry_point"]).decode()
    assert (manifest["name"], manifest["version"]) == ("codeinfo", __version__)
    assert manifest["description"] == SENTENCE
    assert {tool["name"] for tool in manifest["tools"]} == tool_names()
    assert manifest["server"]["mcp_config"]["args"][-1] == "${__dirname}/server/main.py"
    assert project["project"]["dependencies"] == ["codeinfo"]
    assert project["tool"]["uv"]["sources"] == {"codeinfo": {"path": wheel.name}}
    assert project["project"]["requires-python"] == PROJECT["project"]["requires-python"]
    assert 'main(["mcp"])' in start
    assert bundle.write(wheel).read_bytes() == first
