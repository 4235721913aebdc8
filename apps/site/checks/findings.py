"""What a check found."""

from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

import re2

from apps.logs.redaction import clean_text
from codeinfo.surrogates import escaped

# bad: broken, and something that was asked for does not work. off: not set up, which is fine.
Level = Literal["ok", "warn", "bad", "off"]

USUAL_PATHS = ("/v1", "/mcp")
ADDRESS = re2.compile(r"(?i)\b[a-z][a-z0-9+]*://[^\s\"'<>,;)]+")


@dataclass(frozen=True)
class Finding:
    """`word` is the state, `detail` what, where, or why not, `fix` what to do about it."""

    id: str
    name: str
    level: Level
    word: str
    detail: str
    fix: str = ""

    def spoken(self) -> "Finding":
        """The same, fit to be shown to anyone: no secret, of an address its origin alone."""
        return replace(self, detail=_plain(self.detail), fix=_plain(self.fix))


def _plain(text: str) -> str:
    return clean_text(ADDRESS.sub(lambda found: _origin(found[0]), escaped(text)))


def _origin(address: str) -> str:
    """Scheme, host and port, with the full stop that ended a sentence.

    A path that everybody's has is no secret, and help would be none without it.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return "[address]"
    end = "." if address.endswith(".") else ""
    path = parts.path.rstrip(".")
    usual = path if path in USUAL_PATHS else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].rstrip('.')}{usual}{end}"
