"""docs/agents.md: every key, file and word of an agent's folder, and examples that are right."""

import re

import pytest

from apps.agent_runs.definitions import commands, config, folders
from apps.core.config import BASE_DIR, PROVIDERS
from apps.retrieval.tools import TOOLS

DOC = (BASE_DIR / "docs" / "agents.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \|", DOC, re.M)


def snippet(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", DOC, re.M | re.S)
    return str(found)


def test_the_table_of_keys_is_the_one_of_the_code() -> None:
    assert list(config.KEYS) == ROWS


@pytest.mark.parametrize(
    "word",
    [
        *(folders.CONFIG, folders.DESCRIPTION, folders.PROMPT),
        *(tool.name for tool in TOOLS),
        *PROVIDERS,
        *("FORBIDDEN_TOOL", "FORBIDDEN_REPOSITORY"),
    ],
)
def test_every_word_is_told_of(word: str) -> None:
    assert f"`{word}`" in DOC


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {folders.MAX_BYTES:,} bytes" in DOC


def test_the_example_of_a_configuration_means_what_the_text_says() -> None:
    read = config.parse(snippet("toml"))
    assert (read["provider"], read["model"]) == ("codex", "gpt-5.2")
    assert read["config"]["sandbox_mode"] == "workspace-write"
    assert read["config"]["features.shell_tool"] is False
    assert read["warnings"] == ()


def test_the_example_of_a_command_can_be_run() -> None:
    assert len(commands.parse("example", snippet("json")).steps) == 2
