"""Hatchling's metadata hook: the dependencies of the wheel are those of requirements/*.in.

The wheel has ranges, since it is installed beside other packages. A checkout installs the versions
of requirements*.txt, which are in these ranges (tests/cli/test_wheel.py).
"""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRAS = ("codex", "mongodb", "scale")


def requirements(root: Path, name: str) -> list[str]:
    """Return the requirements of `requirements/<name>.in`, without files that it includes."""
    lines = (root / "requirements" / f"{name}.in").read_text().splitlines()
    texts = (line.partition("#")[0].strip() for line in lines)
    return [text for text in texts if text and not text.startswith("-")]


class Dependencies(MetadataHookInterface):
    """Sets `dependencies` and `optional-dependencies`."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = requirements(root, "base")
        metadata["optional-dependencies"] = {name: requirements(root, name) for name in EXTRAS}
