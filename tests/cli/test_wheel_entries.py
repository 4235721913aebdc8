"""Entries that start a wheel, by Python, by `codeinfo` and by the real uv, in a folder of somebody
else's: nothing of it is run, and none of its files is opened."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apps.core import __version__
from release import bundle
from tests.cli.bridge import end_server, started
from tests.cli.hostile import Hostile, hostile
from tests.cli.wheels import Installed
from tests.house.sources import HOME

pytestmark = pytest.mark.door

BIN = Path(sys.executable).parent
NAME = "codeinfo-{}-py3-none-any.whl"


def answers_in(
    workspace: Hostile, command: Sequence[str], variables: Mapping[str, str], home: Path
) -> None:
    """A client with the folder open starts an entry, which starts a server."""
    with (
        workspace.watched(),
        started(command, dict(variables), workspace.path) as client,
    ):
        assert client.shake_hands()["result"]["serverInfo"]["name"] == "codeinfo"
        assert "VectorSearch" in json.dumps(client.ask("tools/list"))
        called = client.ask("tools/call", {"name": "ListIngestedRepositories", "arguments": {}})
        assert "result" in called
        assert client.end() == 0
    data = home / ".local/share/codeinfo"
    assert data.is_dir()
    end_server(data)
    assert (workspace.ran, workspace.opened) == ([], set())


def entry_of_cursor(home: Path) -> Any:
    return json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["codeinfo"]


# Either way to install writes the same files (tests/cli/test_wheel.py).
@pytest.mark.parametrize("installed", ["pip"], indirect=True)
def test_what_install_wrote_runs_nothing_of_the_open_folder(installed: Installed) -> None:
    done = installed.run("codeinfo", "install", "cursor", "--yes")
    assert done.returncode == 0, done.stderr
    entry = entry_of_cursor(installed.home)
    assert entry["command"] == str(installed.bin / "python")
    variables = installed.workspace.variables(installed.environment()) | entry.get("env", {})
    command = [entry["command"], *entry["args"]]
    answers_in(installed.workspace, command, variables, installed.home)


@pytest.mark.parametrize("installed", ["uv"], indirect=True)
def test_the_plugin_for_claude_code_runs_nothing_of_the_open_folder(installed: Installed) -> None:
    file = HOME / "release/claude-code/.mcp.json"
    entry = json.loads(file.read_text())["mcpServers"]["codeinfo"]
    variables = installed.workspace.variables(installed.environment()) | entry["env"]
    # The client looks for the command by its own PATH.
    command = [str(installed.bin / entry["command"]), *entry["args"]]
    answers_in(installed.workspace, command, variables, installed.home)


@dataclass(frozen=True)
class Uv:
    """A user with uv, and an index that has the wheel."""

    home: Path
    index: Path
    workspace: Hostile

    @property
    def wheel(self) -> Path:
        return self.index / NAME.format(__version__)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": f"{self.home / 'bin'}:{os.defpath}",
            "HOME": str(self.home),
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(self.index),
            "UV_PYTHON": sys.executable,
        }

    def answers(self, entry: Mapping[str, Any], *, careless: bool = True) -> None:
        """Start an entry as a client does."""
        usual = self.variables
        variables = (self.workspace.variables(usual) if careless else usual) | entry.get("env", {})
        program = str(self.home / "bin" / entry["command"])
        answers_in(self.workspace, [program, *entry["args"]], variables, self.home)


@pytest.fixture(scope="module")
def uv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Uv:
    """The workspace has settings of uv which name an index with a later codeinfo."""
    if not (BIN / "uvx").exists():
        pytest.skip("uv is not here")
    folder = tmp_path_factory.mktemp("uv")
    home, index = folder / "home", folder / "index"
    (home / "bin").mkdir(parents=True)
    for name in ("uv", "uvx"):
        (home / "bin" / name).symlink_to(BIN / name)
    index.mkdir()
    without_dependencies(wheel, index / wheel.name)
    workspace = hostile(folder)
    later = workspace.path / "dist"
    later.mkdir()
    python = (workspace.path / "codeinfo_cli/__init__.py").read_text()
    without_dependencies(wheel, later / NAME.format("99"), python)
    return Uv(home, index, workspace)


def without_dependencies(wheel: Path, target: Path, code: str = "") -> None:
    """Write a wheel whose dependencies are the packages of this environment, as the download of
    them takes minutes. `code`: in place of its modules"""
    version = target.name.split("-")[1]
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(target, "w") as made:
        for name in given.namelist():
            content = given.read(name)
            if name.endswith("/METADATA"):
                lines = content.decode().split("\n")
                kept = [line for line in lines if not line.startswith("Requires-Dist:")]
                content = "\n".join(kept).replace(__version__, version, 1).encode()
            elif code and name.endswith(".py"):
                content = code.encode()
            made.writestr(name.replace(f"-{__version__}.", f"-{version}."), content)
        made.writestr("dependencies.pth", sysconfig.get_path("purelib"))


@pytest.mark.parametrize("origin", ["an index", "a wheel"])
def test_what_install_wrote_starts_uvx_which_runs_nothing_of_the_open_folder(
    uv: Uv, origin: str
) -> None:
    options = ["--from", str(uv.wheel)] if origin == "a wheel" else []
    done = subprocess.run(
        [uv.home / "bin/uvx", *options, "codeinfo", "install", "cursor", "--yes"],
        cwd=uv.home,
        env=uv.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    entry = entry_of_cursor(uv.home)
    assert entry["command"] == str(uv.home / "bin/uvx")
    assert entry["args"][:3] == ["--from", options[-1] if options else "codeinfo", "python"]
    uv.answers(entry)


def test_server_json_starts_uvx_which_runs_nothing_of_the_open_folder(uv: Uv) -> None:
    (package,) = json.loads((HOME / "server.json").read_text())["packages"]
    arguments = [each["value"] for each in package["packageArguments"]]
    named = f"{package['identifier']}@{package['version']}"
    # It cannot set variables of its own that are not asked for.
    uv.answers({"command": package["runtimeHint"], "args": [named, *arguments]}, careless=False)


def test_the_bundle_starts_uv_which_runs_nothing_of_the_open_folder(uv: Uv) -> None:
    folder = uv.home / "extension"
    with zipfile.ZipFile(bundle.write(uv.wheel)) as archive:
        archive.extractall(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    text = json.dumps(manifest["server"]["mcp_config"]).replace("${__dirname}", str(folder))
    uv.answers(json.loads(text))
