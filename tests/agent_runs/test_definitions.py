"""Agents are folders: what of them is read, what is refused, and in which words."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.agent_runs.definitions import Agent, agent_named, all_agents
from apps.agent_runs.definitions.config import KEYS
from apps.agent_runs.definitions.folders import MAX_BYTES
from apps.core.config import BASE_DIR, Config
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.principal import Principal, acting_as
from tests.support.agents import make_agent, step

STEP = step([" Look. ", "Then tell."])


@pytest.fixture
def home(tmp_path: Path, configure: Callable[..., None]) -> Path:
    configure(agents_home=tmp_path, codex_home=tmp_path / ".codex", data_dir=tmp_path / ".data")
    return tmp_path


def read(home: Path, config: str) -> Agent:
    make_agent(home, "one", config)
    return agent_named("one")


def command(home: Path, body: Any) -> str:
    """What is wrong with a command file."""
    text = body if isinstance(body, str) else json.dumps(body)
    make_agent(home, "one", commands={"check": text})
    (found,) = agent_named("one").commands
    return found.problem


def test_every_file_of_a_folder_is_read(home: Path) -> None:
    make_agent(
        home,
        "reviewer",
        '[codeinfo]\nprovider = "openai"\nmodel = "m"\ntools = ["VectorSearch"]\n'
        'repositories = ["acme"]\n',
        commands={"review_api": json.dumps({"Description": " Looks. ", "items": [STEP, STEP]})},
    )
    (home / "reviewer" / "description.md").write_text("# Title\n\nReads *changes*.\n")
    (home / "reviewer" / "system_prompt.txt").write_text("\ufeffBe brief.\n")
    agent = agent_named("reviewer")
    assert (agent.provider, agent.model) == ("openai", "m")
    assert (agent.tools, agent.repositories) == (("VectorSearch",), ("acme",))
    assert (agent.system_prompt, agent.summary) == ("Be brief.", "Reads *changes*.")
    (found,) = agent.commands
    assert (found.name, found.title, found.description) == ("review_api", "review api", "Looks.")
    assert found.steps == ("Look.\nThen tell.",) * 2
    assert not agent.rights.any


def test_the_default_is_a_read_only_codex_agent_with_its_model(home: Path) -> None:
    agent = read(home, 'model = "gpt-x"\nmodel_reasoning_effort = "high"\n')
    assert (agent.provider, agent.model, agent.tools) == ("codex", "gpt-x", None)
    assert agent.config["model_reasoning_effort"] == "high"
    assert not agent.rights.any
    assert agent.only_searches
    assert "codeinfo" not in agent.config


@pytest.mark.parametrize(
    ("rights", "requested", "unlimited", "warned"),
    [
        ("", "workspace-write", False, True),
        ("", "read-only", False, False),
        ("write = true", "read-only", False, True),
        ("write = true", "workspace-write", False, False),
        ("write = true", "danger-full-access", False, True),
        ("write = true\nrun = true\nnetwork = true", "danger-full-access", True, False),
        ("run = true", "danger-full-access", False, True),
    ],
)
def test_the_rights_override_the_sandbox_of_the_file(
    home: Path, rights: str, requested: str, unlimited: bool, warned: bool
) -> None:
    agent = read(home, f'sandbox_mode = "{requested}"\n[codeinfo]\n{rights}')
    assert agent.rights.unlimited == unlimited
    assert "sandbox_mode" not in agent.config
    assert bool(agent.warnings) == warned


USER = Principal("user", 1)


@pytest.mark.parametrize(
    ("file", "for_staff"),
    [
        ("", False),
        ('model = "m"\nmodel_reasoning_effort = "low"\nsandbox_mode = "read-only"\n', False),
        ('approval_policy = "never"\nweb_search = "live"\n', False),
        ("[codeinfo]\nwrite = true", True),
        ("[codeinfo]\nrun = true", True),
        ("[codeinfo]\nnetwork = true", True),
        ("[codeinfo]\nrun = true\nusers = true", False),
        ('[mcp_servers.other]\nurl = "http://x"', True),
        ('[mcp_servers.other]\nurl = "http://x"\n[codeinfo]\nusers = true', False),
        ('notify = ["true"]', True),
        ("[features]\napps = true", True),
        (
            'sandbox_mode = "danger-full-access"\n'
            "[codeinfo]\nwrite = true\nrun = true\nnetwork = true\nusers = true",
            True,
        ),
        ('[codeinfo]\nprovider = "builtin"\nwrite = true', False),
    ],
)
def test_an_agent_that_does_more_than_search_is_for_staff_unless_its_folder_says_otherwise(
    home: Path, file: str, for_staff: bool
) -> None:
    agent = read(home, file)
    assert agent.usable() == agent
    with acting_as(USER):
        if not for_staff:
            assert agent.usable() == agent
            return
        with pytest.raises(InvalidInput) as refused:
            agent.usable()
    assert refused.value.code == "FORBIDDEN"


def test_the_chats_login_is_copied_once_into_a_home_in_the_data_folder(
    home: Path, configure: Callable[..., None]
) -> None:
    chat, data = home / ".codex", home / ".data"
    chat.mkdir()
    (chat / "auth.json").write_text("first")
    configure(codex_home=chat, data_dir=data)
    folder = make_agent(home, "one")
    assert agent_named("one").warnings == ()
    copied = data / "codex" / "agents" / "one" / "auth.json"
    assert (copied.read_text(), copied.stat().st_mode & 0o777) == ("first", 0o600)
    (chat / "auth.json").write_text("second")
    assert agent_named("one").problem == ""
    assert copied.read_text() == "first"
    assert sorted(path.name for path in folder.iterdir()) == ["commands", "config.toml"]


def test_a_home_that_cannot_be_created_is_a_warning(
    home: Path, configure: Callable[..., None]
) -> None:
    (home / ".data").write_text("a file")
    configure(data_dir=home / ".data")
    agent = read(home, "")
    assert agent.problem == ""
    assert "cannot be made ready" in agent.warnings[0]


def test_further_mcp_servers_are_listed_and_codeinfos_is_protected(home: Path) -> None:
    servers = '[mcp_servers.codeinfo]\nurl = "http://x"\n[mcp_servers."a b"]\nurl = "http://y"\n'
    agent = read(home, servers)
    assert agent.servers == ("a b",)
    assert agent.config["mcp_servers"] == {"a b": {"url": "http://y"}}
    assert "mcp_servers.codeinfo is left out" in agent.warnings[0]


def test_rights_of_a_read_only_provider_are_a_warning(home: Path) -> None:
    agent = read(home, '[codeinfo]\nprovider = "builtin"\nwrite = true\n')
    assert "have no effect" in agent.warnings[0]


def test_an_agent_of_another_provider_is_read_only_with_codex(home: Path) -> None:
    """The page lets its reader choose Codex for it."""
    file = 'sandbox_mode = "danger-full-access"\n[mcp_servers.other]\nurl = "http://x"\n'
    agent = read(home, f'{file}[codeinfo]\nprovider = "builtin"\nwrite = true\nrun = true\n')
    assert not agent.rights.any
    assert not agent.config


@pytest.mark.parametrize("folder", ["/", "~", "~/.."])
def test_programs_of_an_agent_do_not_read_a_home_folder(home: Path, folder: str) -> None:
    agent = read(home, f'[codeinfo]\nrun = true\nreadable = ["{folder}"]\n')
    assert "contains your home folder" in agent.problem


def test_further_folders_are_readable(home: Path) -> None:
    agent = read(home, '[codeinfo]\nrun = true\nreadable = ["~/.cargo", "/opt/tools"]\n')
    assert agent.rights.readable == (Path.home().resolve() / ".cargo", Path("/opt/tools"))


def test_a_model_needs_a_provider(home: Path) -> None:
    agent = read(home, '[codeinfo]\nprovider = "auto"\nmodel = "m-1"\n')
    assert "model needs a provider" in agent.problem


WRONG = {
    "provider": '"hal"',
    "model": '""',
    "tools": '["rm"]',
    "repositories": "[]",
    "write": '"yes"',
    "run": "1",
    "network": "[]",
    "readable": '["relative"]',
    "project_docs": "1",
    "users": '"all"',
}


@pytest.mark.parametrize("key", KEYS)
def test_an_invalid_value_is_reported_with_its_key(home: Path, key: str) -> None:
    agent = read(home, f"[codeinfo]\n{key} = {WRONG[key]}\n")
    assert f"[codeinfo] {key}" in agent.problem
    with pytest.raises(InvalidInput, match="AGENT_INVALID|one") as refused:
        agent.usable()
    assert refused.value.code == "AGENT_INVALID"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("[codeinfo]\nrepositry = ['acme']\n", "[codeinfo] has no key 'repositry'"),
        ("codeinfo = 3\n", "[codeinfo] must be a table"),
        ("x = [", "config.toml is not valid TOML"),
        ("a\0b", "It holds a NUL"),
        ("x" * (MAX_BYTES + 1), "Too large: config.toml"),
    ],
)
def test_an_invalid_file_is_the_problem_of_its_agent(home: Path, config: str, problem: str) -> None:
    assert read(home, config).problem.startswith(problem)


def test_a_binary_file_is_a_problem(home: Path) -> None:
    folder = make_agent(home, "one")
    (folder / "system_prompt.txt").write_bytes(b"\xff\xfe")
    assert agent_named("one").problem == "No UTF-8: system_prompt.txt"


def test_a_folder_without_config_is_listed_as_invalid(home: Path) -> None:
    (home / "empty").mkdir()
    assert "config.toml" in agent_named("empty").problem


@pytest.mark.parametrize("file", ["config.toml", "description.md", "system_prompt.txt"])
def test_links_are_not_followed(home: Path, tmp_path: Path, file: str) -> None:
    folder = make_agent(home, "one")
    secret = folder / "elsewhere.txt"
    secret.write_text("secret")
    (folder / file).unlink(missing_ok=True)
    (folder / file).symlink_to(secret)
    assert agent_named("one").problem == f"Symbolic link: {file}"


def test_a_linked_agent_and_linked_commands_are_refused(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / ".outside"
    make_agent(outside, "target", commands={"x": "{}"})
    (home / "linked").symlink_to(outside / "target")
    folder = make_agent(home, "one")
    (folder / "commands").rmdir()
    (folder / "commands").symlink_to(outside / "target" / "commands")
    assert {agent.name: agent.problem for agent in all_agents()} == {
        "linked": "Symbolic link: config.toml",
        "one": "Symbolic link: commands",
    }


def test_a_named_pipe_does_not_block_the_reader(home: Path) -> None:
    folder = make_agent(home, "one")
    os.mkfifo(folder / "description.md")
    assert agent_named("one").problem == "Not a regular file: description.md"


def test_agents_are_sorted_without_hidden_entries_and_files(home: Path) -> None:
    for name in ("b", "a", ".git", "__pycache__"):
        make_agent(home, name)
    (home / "README.md").write_text("not an agent")
    assert [agent.name for agent in all_agents()] == ["a", "b"]


def test_an_edit_is_read_at_the_next_call(home: Path) -> None:
    folder = make_agent(home, "one")
    assert agent_named("one").description == ""
    (folder / "description.md").write_text("New.")
    assert agent_named("one").description == "New."


def test_an_invalid_name_is_a_problem(home: Path) -> None:
    make_agent(home, "a;b")
    assert agent_named("a;b").problem.startswith("A name is")


@pytest.mark.parametrize("name", ["none", "..", "../x", "."])
def test_an_unknown_agent_is_not_found(home: Path, name: str) -> None:
    with pytest.raises(NotFound) as missing:
        agent_named(name)
    assert missing.value.code == "AGENT_NOT_FOUND"


def test_a_missing_home_is_unavailable_with_its_path(
    tmp_path: Path, configure: Callable[..., None]
) -> None:
    configure(agents_home=tmp_path / "nowhere")
    with pytest.raises(Unavailable, match="nowhere") as away:
        all_agents()
    assert (away.value.code, away.value.retryable) == ("AGENTS_UNAVAILABLE", False)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "it is no JSON"),
        ([], "it must be an object"),
        ({"items": [STEP]}, "it lacks 'Description'"),
        ({"Description": " ", "items": [STEP]}, "Description must be a text"),
        ({"Description": "d", "items": []}, "items must be a list"),
        ({"Description": "d", "items": [STEP], "x": 1}, "it has an unknown key 'x'"),
        ({"Description": "d", "items": ["s"]}, "items[0] must be an object"),
        (
            {"Description": "d", "items": [STEP | {"role": "system"}]},
            "items[0].role must be 'user'",
        ),
        ({"Description": "d", "items": [STEP | {"type": "x"}]}, "items[0].type must be 'message'"),
        (
            {"Description": "d", "items": [STEP | {"content": "s"}]},
            "items[0].content must be a list",
        ),
        ({"Description": "d", "items": [STEP | {"content": [" "]}]}, "items[0].content[0] must be"),
        ({"Description": "d", "items": [STEP | {"extra": 1}]}, "items[0] has an unknown key"),
    ],
)
def test_invalid_command_files_are_refused(home: Path, body: Any, problem: str) -> None:
    assert command(home, body).startswith(problem)


def test_a_command_is_found_refused_or_missing(home: Path) -> None:
    make_agent(
        home,
        "one",
        commands={"bad": "{}", "good": json.dumps({"Description": "d", "items": [STEP]})},
    )
    agent = agent_named("one")
    assert agent.command("good").steps
    for name, code in (("bad", "COMMAND_INVALID"), ("../good", "COMMAND_NOT_FOUND")):
        with pytest.raises((InvalidInput, NotFound)) as refused:
            agent.command(name)
        assert refused.value.code == code


def test_the_alternative_name_of_the_folder_variable_works() -> None:
    assert Config.read({"CODEINFO_CODEX_AGENT_HOME": "/x"}).agents_home == Path("/x")
    both = {"CODEINFO_CODEX_AGENT_HOME": "/x", "CODEINFO_AGENTS_HOME": "/y"}
    assert Config.read(both).agents_home == Path("/y")


def test_the_example_agents_are_valid(configure: Callable[..., None]) -> None:
    configure(agents_home=BASE_DIR / "agents")
    found = {agent.name: agent for agent in all_agents()}
    assert {"code_tour", "risk_finder"} <= set(found)
    for agent in found.values():
        assert (agent.problem, agent.warnings, agent.provider) == ("", (), "auto")
        assert agent.description
        assert agent.system_prompt
        assert len(agent.commands) == 2
        assert all(not command.problem for command in agent.commands)
