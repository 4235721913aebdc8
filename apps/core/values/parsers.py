"""Parsers of settings. They raise ValueError; a message that says what is right starts with "must".

A value that NumberOr or TrueOrNot refuses does not stop the start: it means the default
(docs/contract.md §4.4), and `config.replaced_values` reports it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apps.core.values.addresses import Address

Parse = Callable[[str], Any]
IPNetwork = IPv4Network | IPv6Network


def text(value: str) -> str:
    return value


def boolean(value: str) -> bool:
    values = {"true": True, "1": True, "yes": True, "on": True}
    values |= {"false": False, "0": False, "no": False, "off": False}
    try:
        return values[value.lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def integer(low: int, high: int) -> Parse:
    def parse(value: str) -> int:
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"must be between {low} and {high}")
        return number

    return parse


def clamped(low: int, high: int) -> Parse:
    """An integer, clamped to a range (docs/contract.md, INGEST_FLUSH_EVERY)."""
    return lambda value: min(high, max(low, int(value)))


EDITORS = ("vscode", "cursor", "none")


def editor(value: str) -> str:
    """One of EDITORS, or the URL of another with `{path}` and `{line}`."""
    if value.lower() in EDITORS:
        return value.lower()
    scheme, mark, _ = value.partition("://")
    is_scheme = scheme.isascii() and scheme.replace("-", "").isalnum() and scheme != "javascript"
    if not (mark and is_scheme and "{path}" in value and value.split() == [value]):
        raise ValueError(f"must be {', '.join(EDITORS)} or a URL such as idea://open?file={{path}}")
    return value


def fraction(value: str) -> float:
    number = float(value)
    if not 0 < number <= 1:
        raise ValueError("must be above 0 and at most 1")
    return number


def choice(*allowed: str) -> Parse:
    def parse(value: str) -> str:
        if value.lower() not in allowed:
            raise ValueError(f"must be one of: {', '.join(allowed)}")
        return value.lower()

    return parse


def words(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def pairs(value: str) -> tuple[tuple[str, str], ...]:
    """`name=value` pairs, comma separated."""
    found = tuple(tuple(part.strip() for part in word.split("=", 1)) for word in words(value))
    if any(len(pair) != 2 or not all(pair) for pair in found):
        raise ValueError("must be pairs such as github.com=TOKEN, comma separated")
    return tuple((pair[0], pair[1]) for pair in found)


def paths(value: str) -> tuple[Path, ...]:
    return tuple(Path(part).expanduser() for part in words(value))


def networks(value: str) -> tuple[IPNetwork, ...]:
    """IP addresses and networks. Host bits of a network are ignored."""
    try:
        return tuple(ip_network(word, strict=False) for word in words(value))
    except ValueError:
        raise ValueError("must be addresses or networks such as 127.0.0.1, 10.0.0.0/8") from None


def path(value: str) -> Path:
    return Path(value).expanduser()


def http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// address")
    return value.rstrip("/")


def address(value: str) -> str:
    """A server address, parsed as one that a user enters on a page."""
    return str(Address.parse(value))


def database_url(value: str) -> str:
    """A database URL. Errors do not repeat the value, which may contain a password."""
    expected = "must be sqlite:///file, postgres://user:password@host:port/name or mongodb://…"
    parts = urlsplit(value)
    if parts.scheme not in ("sqlite", "postgres", "postgresql", "mongodb", "mongodb+srv"):
        raise ValueError(expected)
    if not parts.scheme.startswith("mongodb"):
        try:
            _ = parts.port
        except ValueError:
            raise ValueError(expected) from None
    return value


def lmstudio_token(value: str) -> str:
    if not re.fullmatch(r"sk-lm-[A-Za-z0-9]{8}:[A-Za-z0-9]{20}", value):
        raise ValueError("must look like sk-lm-xxxxxxxx:xxxxxxxxxxxxxxxxxxxx")
    return value


def chroma_url(value: str) -> str:
    """A URL or `host:port`. The default port is 8000."""
    url = http_url(value if "://" in value else f"http://{value}")
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or 8000}"


@dataclass(frozen=True)
class NumberOr:
    """Parses a number. Other texts and numbers out of range mean the default."""

    default: float
    accept: Callable[[float], bool]
    whole: bool = False

    def __call__(self, value: str) -> float:
        number = self.default if self.refuses(value) else float(value)
        return math.floor(number) if self.whole else number

    def refuses(self, value: str) -> bool:
        try:
            number = float(value)
        except ValueError:
            return True
        return not math.isfinite(number) or not self.accept(number)


@dataclass(frozen=True)
class TrueOrNot:
    """Parses `true`, in any case. Every other text is False, and right only if it is `false`."""

    def __call__(self, value: str) -> bool:
        return value.lower() == "true"

    def refuses(self, value: str) -> bool:
        return value.lower() not in ("true", "false")
