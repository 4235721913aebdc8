"""docs/agents.md documents every key, file and value of an agent's folder; its examples work."""

import re

import pytest

from apps.agent_runs.definitions import commands, config, folders
from apps.agents.providers.base import Rights
from apps.core.config import BASE_DIR, PROVIDERS

DOC = (BASE_DIR / "docs" / "agents.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \|", DOC, re.M)


def snippet(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", DOC, re.M | re.S)
    return str(found)


def test_the_documented_keys_match_the_code() -> None:
    assert list(config.KEYS) == ROWS


@pytest.mark.parametrize(
    "word",
    [
        *(folders.CONFIG, folders.DESCRIPTION, folders.PROMPT),
        *PROVIDERS,
        *("FORBIDDEN_TOOL", "FORBIDDEN_REPOSITORY"),
    ],
)
def test_every_value_is_documented(word: str) -> None:
    assert f"`{word}`" in DOC


def test_the_documented_limits_match_the_code() -> None:
    assert f"at most {folders.MAX_BYTES:,} bytes" in DOC


def test_the_documented_configuration_has_the_described_effect() -> None:
    read = config.parse(snippet("toml"))
    assert (read["provider"], read["model"]) == ("codex", "gpt-5.2")
    assert read["rights"] == Rights(write=True)
    assert read["warnings"] == ()


def test_the_documented_command_runs() -> None:
    assert len(commands.parse("example", snippet("json")).steps) == 2
