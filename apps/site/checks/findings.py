"""The result of a check."""

import re
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from apps.logs.redaction import clean_text

# bad: something that is set up does not work. off: not set up, which is no problem.
Level = Literal["ok", "warn", "bad", "off"]

USUAL_PATHS = ("/v1", "/mcp")
ADDRESS = re.compile(r"\b[a-z][a-z0-9+]{0,20}://[^\s\"'<>,;)]+", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """The result of a check, which CheckRunner gives the check's id and name."""

    id: str
    name: str
    level: Level
    word: str  # the state in a word or two
    detail: str
    fix: str = ""  # what the user can do

    def redacted(self) -> "Finding":
        """Return a copy without secrets: of URLs, only the origin."""
        return replace(self, detail=_plain(self.detail), fix=_plain(self.fix))


def found(level: Level, word: str, detail: str, fix: str = "") -> Finding:
    """Return what a check has found."""
    return Finding("", "", level, word, detail, fix)


def _plain(text: str) -> str:
    return clean_text(ADDRESS.sub(lambda match: _origin(match[0]), text))


def _origin(address: str) -> str:
    """Return scheme, host and port of a URL, and a full stop at its end. The usual paths stay, as
    they are no secret and help the user."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "[address]"
    end = "." if address.endswith(".") else ""
    path = parts.path.rstrip(".")
    usual = path if path in USUAL_PATHS else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].rstrip('.')}{usual}{end}"
