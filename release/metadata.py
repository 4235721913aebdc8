"""Hatchling's metadata hook: the dependencies of the wheel are those of requirements/*.in, and its
description is release/README.md with the name of server.json.

The wheel has ranges, since it is installed beside other packages. A checkout installs the versions
of requirements*.txt, which are in these ranges (tests/cli/test_wheel.py).
"""

import json
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRAS = ("chroma", "codex", "mongodb", "pages", "scale", "traces")


def requirements(root: Path, name: str) -> list[str]:
    """Return the requirements of `requirements/<name>.in`, without files that it includes."""
    lines = (root / "requirements" / f"{name}.in").read_text().splitlines()
    texts = (line.partition("#")[0].strip() for line in lines)
    return [text for text in texts if text and not text.startswith("-")]


def description(root: Path) -> str:
    """Return the text for the package index. The MCP registry looks for the name of server.json in
    it, which shows that both have one publisher."""
    name = json.loads((root / "server.json").read_text())["name"]
    title, rest = (root / "release" / "README.md").read_text().split("\n", 1)
    return f"{title}\n\n<!-- mcp-name: {name} -->\n{rest}"


class Metadata(MetadataHookInterface):
    """Sets `readme`, `dependencies` and `optional-dependencies`."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["readme"] = {"content-type": "text/markdown", "text": description(root)}
        metadata["dependencies"] = requirements(root, "base")
        metadata["optional-dependencies"] = {name: requirements(root, name) for name in EXTRAS}
