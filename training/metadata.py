"""The metadata of a package, from its archive."""

import email
import json
import tarfile
from email.message import Message
from pathlib import Path
from typing import Any

from training import archives


def wheel_metadata(archive: Path) -> Message:
    for _, content in archives.files(archive, _is_wheel_metadata):
        return email.message_from_bytes(content)
    return Message()


def _is_wheel_metadata(path: str) -> bool:
    return path.endswith(".dist-info/METADATA") and path.count("/") == 1


def npm_description(archive: Path) -> dict[str, Any]:
    for _, content in archives.files(archive, _is_npm_description):
        found: dict[str, Any] = json.loads(content)
        return found
    return {}


def _is_npm_description(path: str) -> bool:
    return path.count("/") == 1 and path.endswith("/package.json")


def source_rules(packaging: Path) -> str:
    """The copyright file of a Debian source package."""
    with tarfile.open(packaging) as opened:
        try:
            content = opened.extractfile("debian/copyright")
        except KeyError:
            return ""
        return content.read().decode("utf-8", "replace") if content else ""
