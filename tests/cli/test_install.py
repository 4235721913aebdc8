"""`codeinfo install` and `uninstall`, over samples of each client's files."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeinfo_cli.clients import files, installing, jsonc, texts
from codeinfo_cli.clients.client import NAME, Client, Machine
from codeinfo_cli.clients.launch import Launch
from codeinfo_cli.clients.table import CLIENTS, client_named
from tests.cli.installing import LAUNCH, Result, given, install

JSON_SAMPLE = """\
{
  "theme": "dark",
  "KEY": {
    "other": {
      "command": "npx",
      "args": ["-y", "other"],
      "env": {"TOKEN": "s3cret"}
    }
  },
  "after": [1, 2, {"x": null}]
}
"""
COMMENTED_SAMPLE = """\
// My settings
{
    "theme": "dark", // at night
    /* servers:
       { "codeinfo": none } */
    "KEY": {
        // "old": {},
        "other": { "command": "npx", "args": ["-y", "other"] }, // keep
    },
}
"""
TOML_SAMPLE = """\
# My settings
model = "gpt"   # the best

[mcp_servers.other] # keep
command = "npx"
args = ["-y",
  "other"] # two

[profiles."a b"]
x = 1
"""


YAML_SAMPLE = """\
# My settings
GOOSE_MODEL: gpt   # the best

extensions:
  # mine
  other: # keep
    cmd: npx
    args: ["-y",
      other] # two

GOOSE_MODE: auto
"""


def samples(client: Client) -> dict[str, bytes | None]:
    """The states of a configuration that a user may have."""
    if client.format == "TOML":
        found = {"plain": TOML_SAMPLE, "inline": 'mcp_servers = { other = { url = "u" } }\n'}
        found["dotted"] = 'mcp_servers.other.url = "u"\nx = 1\n'
    elif client.format == "YAML":
        found = {"plain": YAML_SAMPLE, "deep": YAML_SAMPLE.replace("\n  ", "\n    ")}
        found["no servers"] = "GOOSE_MODE: auto"
        found["none"] = "extensions:\nGOOSE_MODE: auto\n"
        found["braces"] = "extensions: {} # keep\n"
    else:
        found = {"plain": JSON_SAMPLE.replace("KEY", client.key)}
        found["commented"] = COMMENTED_SAMPLE.replace("KEY", client.key)
        found["minified"] = json.dumps(json.loads(found["plain"]), separators=(",", ":"))
        found["no servers"] = '{"theme": "dark"}'
        found["braces"] = "{}"
    found["CRLF"] = found["plain"].replace("\n", "\r\n")
    found["BOM"] = "\ufeff" + found["plain"]
    found["empty"], found["blank"] = "", "\n \n"
    return {"missing": None, **{name: text.encode() for name, text in found.items()}}


CASES = [(client, name) for client in CLIENTS for name in samples(client)]


def form(client: Client) -> Any:
    return installing.FORMATS.get(client.format, jsonc)


def parsed(client: Client, content: bytes | None) -> Any:
    return form(client).loads((content or b"").decode().removeprefix("\ufeff"))


def uninstall(client: Client, machine: Machine, data: Path) -> int:
    changes = installing.plan_uninstall(client, machine, data)
    installing.make(changes, client, data, removes=True)
    return len(changes)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(("client", "sample"), CASES, ids=lambda x: getattr(x, "id", x))
def test_install_adds_our_entry_and_uninstall_restores_every_byte(
    client: Client, sample: str, machine: Machine, data: Path
) -> None:
    config, content = client.config(machine), samples(client)[sample]
    given(config, content)
    before, value = tree(machine.home), parsed(client, content)
    assert install(client, machine, data) == (2 if client.instructions else 1)
    servers = value.get(client.key, {}) | {NAME: client.entry(LAUNCH)}
    assert parsed(client, config.read_bytes()) == value | {client.key: servers}
    assert installing.entry_of(client, machine) == client.entry(LAUNCH)
    assert install(client, machine, data) == 0
    # Another installation of codeinfo takes its place.
    moved = Launch("/elsewhere", ("mcp",))
    assert install(client, machine, data, moved) == 1
    record = data / "clients" / f"{client.id}.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    uninstall(client, machine, data)
    assert tree(machine.home) == before
    assert not record.exists()
    assert uninstall(client, machine, data) == 0


@pytest.mark.parametrize("lost", [False, True], ids=["edited", "record lost"])
@pytest.mark.parametrize(("client", "sample"), CASES, ids=lambda x: getattr(x, "id", x))
def test_uninstall_of_an_edited_file_removes_only_our_entry(
    client: Client, sample: str, lost: bool, machine: Machine, data: Path
) -> None:
    config, content = client.config(machine), samples(client)[sample]
    given(config, content)
    install(client, machine, data)
    value = parsed(client, content)
    text = config.read_bytes().decode()
    edited = form(client).with_member(text.removeprefix("\ufeff"), client.key, "mine", {"x": 1})
    config.write_text(edited)
    if lost:
        (data / "clients" / f"{client.id}.json").unlink()
    uninstall(client, machine, data)
    servers = value.get(client.key, {}) | {"mine": {"x": 1}}
    assert parsed(client, config.read_bytes()) == value | {client.key: servers}
    for comment in ("// at night", "// keep", "# the best", "# two"):
        assert (comment in config.read_text()) == (comment.encode() in (content or b""))
    if client.instructions and not lost:
        assert not client.instructions_on(machine).exists()


WITH_INSTRUCTIONS = [client for client in CLIENTS if client.instructions]


@pytest.mark.parametrize("client", WITH_INSTRUCTIONS, ids=lambda client: client.id)
@pytest.mark.parametrize("before", [None, "", "# Mine", "# Mine\r\n\r\nText\r\n"])
def test_instructions_are_a_section_or_a_file_of_ours(
    client: Client, before: str | None, machine: Machine, data: Path
) -> None:
    assert client.instructions
    path = client.instructions_on(machine)
    given(path, None if before is None else before.encode())
    install(client, machine, data)
    text = path.read_bytes().decode()
    assert "VectorSearch" in text
    if client.instructions.kind == "section":
        assert text.startswith(before or texts.BEGIN)
        path.write_bytes(text.encode() + b"More\n")
        uninstall(client, machine, data)
        # Only the line break before the section may be ours.
        left = path.read_bytes().decode()
        assert left.endswith("More\n")
        assert left.removesuffix("More\n").rstrip("\r\n") == (before or "").rstrip("\r\n")
    else:
        assert text.startswith("---\n")
        path.write_text(text + "Mine.\n")
        uninstall(client, machine, data)
        assert path.read_text() == text + "Mine.\n"


DAMAGED = {
    "JSON": [b'{"a": 1', b"[]", b'{"KEY": []}', b"\xff\xfe{", b"{" * 500],
    "YAML": [b"extensions: [", b"[]", b"extensions: 1", b"\xff", b"extensions: {other: {cmd: x}}"],
    "TOML": [b"[mcp_servers", b"mcp_servers = 1", b"\xff", b"a = 1\na = 2"],
}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_damaged_files_are_refused_and_stay(client: Client, machine: Machine, data: Path) -> None:
    config = client.config(machine)
    for content in DAMAGED.get(client.format, DAMAGED["JSON"]):
        given(config, content.replace(b"KEY", client.key.encode()))
        before = tree(machine.home)
        with pytest.raises(files.Refused, match="It was left as it is"):
            install(client, machine, data)
        assert tree(machine.home) == before


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_links_and_modes_are_kept(client: Client, machine: Machine, data: Path) -> None:
    config = client.config(machine)
    real = machine.home / "dotfiles" / "config"
    given(real, samples(client)["plain"])
    real.chmod(0o640)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.symlink_to(os.path.relpath(real, config.parent))
    install(client, machine, data)
    assert config.is_symlink()
    assert installing.entry_of(client, machine)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    uninstall(client, machine, data)
    assert config.is_symlink()
    assert real.read_bytes() == samples(client)["plain"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    # A link to nothing creates what it leads to.
    real.unlink()
    install(client, machine, data)
    assert config.is_symlink()
    assert real.exists()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_read_only_files_are_refused(client: Client, machine: Machine, data: Path) -> None:
    config = client.config(machine)
    given(config, samples(client)["plain"])
    config.chmod(0o444)
    with pytest.raises(files.Refused, match="is read-only"):
        install(client, machine, data)
    assert config.read_bytes() == samples(client)["plain"]
    assert not client.instructions or not client.instructions_on(machine).exists()


def test_other_obstacles_are_refused(machine: Machine, data: Path) -> None:
    cursor = client_named("cursor")
    assert cursor
    config = cursor.config(machine)
    obstacles: dict[str, Callable[[], Any]] = {
        "cannot be read": config.mkdir,
        "is larger than 8 MiB": lambda: config.write_bytes(b" " * (8 * 2**20 + 1)),
        "cannot be read: ": lambda: config.symlink_to(config.name),
    }
    config.parent.mkdir(parents=True)
    for reason, make in obstacles.items():
        make()
        with pytest.raises(files.Refused, match=reason):
            install(cursor, machine, data)
        config.rmdir() if config.is_dir() else config.unlink()
    config.parent.rmdir()
    config.parent.write_text("a file where the folder should be")
    with pytest.raises(files.Refused, match="cannot be"):
        install(cursor, machine, data)


def test_a_file_that_another_program_changes_meanwhile_is_not_overwritten(
    machine: Machine, data: Path
) -> None:
    for client in CLIENTS:
        config = client.config(machine)
        given(config, samples(client)["plain"])
        changes = installing.plan_install(client, machine, LAUNCH)
        given(config, b"# another\n")
        with pytest.raises(files.Refused, match="was changed by another program"):
            installing.make(changes, client, data)
        assert config.read_bytes() == b"# another\n"
        assert not list(config.parent.glob(".codeinfo-*"))


def test_clients_are_found_by_their_folder_or_program(machine: Machine, tmp_path: Path) -> None:
    assert not any(client.is_on(machine) for client in CLIENTS)
    programs = tmp_path / "bin"
    for client in CLIENTS:
        client.folder(machine).mkdir(parents=True)
        assert client.is_on(machine), client.id
    for client in CLIENTS:
        for name in client.programs:
            given(programs / name, b"#!/bin/sh\n")
            (programs / name).chmod(0o755)
    elsewhere = Machine(tmp_path / "nobody", path=str(programs))
    assert all(client.is_on(elsewhere) for client in CLIENTS if client.programs)


def test_variables_and_systems_move_the_files(machine: Machine) -> None:
    moved = Machine(
        machine.home,
        environ={"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/cc", "XDG_CONFIG_HOME": "/x"},
    )
    mac = Machine(Path("/Users/a"), is_mac=True)
    found = {client.id: (str(client.config(moved)), str(client.config(mac))) for client in CLIENTS}
    assert found["codex"] == ("/c/config.toml", "/Users/a/.codex/config.toml")
    assert found["claude-code"] == ("/cc/.claude.json", "/Users/a/.claude.json")
    assert found["zed"] == ("/x/zed/settings.json", "/Users/a/.config/zed/settings.json")
    assert found["vs-code"] == (
        "/x/Code/User/mcp.json",
        "/Users/a/Library/Application Support/Code/User/mcp.json",
    )


# --- the command --------------------------------------------------------------------------------


def test_the_command_shows_asks_and_writes(run: Callable[..., Result], machine: Machine) -> None:
    shown = run("install", "cursor", "--print")
    assert shown.exit_code == 0
    assert '+    "codeinfo": {' in shown.output
    assert not tree(machine.home)
    refused = run("install", "cursor", input="n\n")
    assert (refused.exit_code, "Nothing was changed." in refused.output) == (1, True)
    unasked = run("install", "cursor", input="")
    assert (unasked.exit_code, "nobody can be asked here" in unasked.output) == (2, True)
    assert not tree(machine.home)
    assert run("install", "cursor", input="y\n").exit_code == 0
    assert "mcpServers" in (machine.home / ".cursor/mcp.json").read_text()
    assert "already there" in run("install", "cursor", "--yes").output
    assert run("uninstall", "cursor", "--yes").exit_code == 0
    assert not (machine.home / ".cursor").exists()
    assert "not there" in run("uninstall", "cursor", "--yes").output


def test_the_command_in_json_and_its_errors(run: Callable[..., Result], machine: Machine) -> None:
    assert run("install", "cursor", "--json").exit_code == 2
    planned = json.loads(run("install", "claude", "--json", "--print").output)
    assert (planned["client"], planned["written"]) == ("claude-code", False)
    assert planned["changes"][0]["path"] == str(machine.home / ".claude.json")
    assert json.loads(run("install", "claude", "--json", "--yes").output)["written"]
    assert run("install", "emacs").exit_code == 2
    given(machine.home / ".codex/config.toml", b"[broken")
    failed = run("install", "codex", "--yes")
    assert failed.exit_code == 2
    assert "config.toml is damaged" in failed.output
    rows = json.loads(run("install", "--json").output)
    assert {row["client"]: row["found"] for row in rows}["codex"] is True
    assert run("install", "claude", "--project").exit_code == 2
    assert run("uninstall").exit_code == 2


def test_without_a_name_all_clients_that_are_found_get_it_after_one_question(
    run: Callable[..., Result], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    listed = run("install")
    assert (listed.exit_code, len(listed.output.splitlines())) == (0, len(CLIENTS))
    for name in (".cursor", ".kiro", ".codex"):
        (machine.home / name).mkdir()
    given(machine.home / ".codex/config.toml", b"[broken")
    done = run("install", input="y\n")
    assert done.output.count("Write this?") == 1
    assert "Added codeinfo to Cursor" in done.output
    assert "Added codeinfo to Kiro" in done.output
    # One that cannot be changed does not keep the others from it.
    assert done.exit_code == 2
    assert "config.toml is damaged" in done.output
    again = json.loads(run("install", "--json", "--print").output.splitlines()[0])
    assert [(row["client"], row["changes"]) for row in again] == [("cursor", []), ("kiro", [])]


def test_a_project_names_the_command_and_no_interpreter(
    run: Callable[..., Result], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    given(folder / ".vscode/mcp.json", b'{"servers": {"other": {"command": "x"}}} // mine\n')
    monkeypatch.chdir(folder)
    before = tree(folder)
    monkeypatch.setenv("PATH", "")
    missing = run("install", "--project", "--yes")
    assert (missing.exit_code, "not on your PATH" in missing.output) == (2, True)
    assert tree(folder) == before
    given(tmp_path / "bin/codeinfo", b"#!/bin/sh\n")
    (tmp_path / "bin/codeinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run("install", "--project", input="y\n").exit_code == 0
    entry = {"type": "stdio", "command": "codeinfo", "args": ["mcp"]}
    for file, key in ((".mcp.json", "mcpServers"), (".cursor/mcp.json", "mcpServers")):
        assert json.loads((folder / file).read_text()) == {key: {NAME: entry}}
    shared = jsonc.loads((folder / ".vscode/mcp.json").read_text())
    assert shared == {"servers": {"other": {"command": "x"}, NAME: entry}}
    assert run("uninstall", "--project", "--yes").exit_code == 0
    assert tree(folder) == before
