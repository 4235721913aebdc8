"""The files that registries and clients read have one name, one version, one command, our tools."""

import json
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from apps.core import __version__
from apps.mcp.search import SEARCH
from apps.retrieval.tools import TOOLS
from release import bundle
from tests.house.sources import HOME

PLUGIN = HOME / "release" / "claude-code"
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
SENTENCE = PROJECT["project"]["description"]
SKILL = PLUGIN / "skills" / "codeinfo" / "SKILL.md"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def tool_names() -> set[str]:
    return {tool.name for tool in SEARCH.registry()}


def test_server_json_names_the_package_its_version_and_its_command() -> None:
    server = read(HOME / "server.json")
    (package,) = server["packages"]
    assert server["name"].split("/")[1] == server["title"] == package["identifier"] == "codeinfo"
    assert server["version"] == package["version"] == __version__
    assert server["description"] == SENTENCE and len(SENTENCE) <= 100
    assert [each["value"] for each in package["packageArguments"]] == ["mcp"]
    assert package["transport"] == {"type": "stdio"}
    # The registry looks for this line in the description of the package.
    readme = (HOME / PROJECT["project"]["readme"]).read_text()
    assert re.findall(r"mcp-name: (\S+)", readme) == [server["name"]]
    assert list(PROJECT["project"]["scripts"]) == ["codeinfo"]


def test_the_plugin_for_claude_code_starts_the_command_and_has_the_skill() -> None:
    plugin = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert (plugin["name"], plugin["version"]) == ("codeinfo", __version__)
    assert plugin["description"] == SENTENCE
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert servers == {"codeinfo": {"command": "codeinfo", "args": ["mcp"]}}
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
