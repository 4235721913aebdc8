"""Folders of agents, as a test wants them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

NOTHING: Mapping[str, str] = MappingProxyType({})


def make_agent(
    home: Path,
    name: str,
    config: str = "",
    *,
    prompt: str = "",
    description: str = "",
    commands: Mapping[str, str] = NOTHING,
) -> Path:
    """An agent's folder, with the texts of its command files by name."""
    folder = home / name
    (folder / "commands").mkdir(parents=True)
    texts = {"config.toml": config, "system_prompt.txt": prompt, "description.md": description}
    for file, text in texts.items():
        if text or file == "config.toml":
            (folder / file).write_text(text)
    for command, text in commands.items():
        (folder / "commands" / f"{command}.json").write_text(text)
    return folder


def command_text(*steps: str, description: str = "Looks twice.") -> str:
    """A command file that is right."""
    return json.dumps({"Description": description, "items": [step([text]) for text in steps]})


def step(content: Sequence[str]) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": list(content)}
