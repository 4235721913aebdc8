"""Redact secrets in log entries: by the name of their field, by their pattern, and our own.

`clean` also escapes control, ANSI and bidirectional characters, so that no text can forge a line,
colour a terminal or change the reading direction.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from urllib.parse import quote, urlsplit

import re2
from django.conf import settings

from apps.core.config import Config, config
from apps.core.values.surrogates import escaped

REDACTED = "[redacted]"
# A plural is a count ("inputTokens"); a singular is a secret.
SECRET_NAMES = re.compile(
    r"authorization|passw(or)?d|passphrase|token(?!s)|secret|credential|cookie|csrf|session_?id"
    r"|(api|access|private)[_-]?key",
    re.IGNORECASE,
)
_VALUE = r"""(?:[\[({][^\])}\n]{0,2000}|\\?"[^"\\\n]*\\?"|'[^'\n]*'|[^\s"'&,;\\]+)"""
# (substring that must occur, pattern, replacement). The patterns run in linear time, because texts
# are untrusted.
SECRET_PATTERNS: tuple[tuple[str, Any, str], ...] = (
    (
        "-----BEGIN",
        re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END|\Z)", re.S),
        REDACTED,
    ),
    ("://", re.compile(r"(://)[^/\s:@]*:[^/\s@]*@"), rf"\1{REDACTED}@"),
    ("", re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.I), rf"\1 {REDACTED}"),
    ("k-", re.compile(r"\b(?:sk|pk|rk)-[\w-]{6,}"), REDACTED),
    ("", re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abposr]-|hf_)[\w-]{8,}"), REDACTED),
    ("IA", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
    # The web server logs the URI of an aborted request; its query may contain private data.
    ("uri=", re2.compile(r"(\buri=[^\s?>]*\?)[^\s>]+"), rf"\1{REDACTED}"),
    # A link to a copy of a conversation (apps/conversations/sharing.py), also within an address,
    # and with a slip, by which half of a token may be left: those who read the log would see what
    # is meant.
    ("", re2.compile(r"(?i)(shared(?:/|%2F).{0,20}?)[0-9a-f]{16,}"), rf"\1{REDACTED}"),
    ("eyJ", re2.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), REDACTED),
    (
        "",
        re.compile(
            rf"((?:{SECRET_NAMES.pattern})[\w-]{{0,20}}[\\\"']{{0,2}}\s{{0,3}}[=:]\s{{0,3}}){_VALUE}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)
# A shorter secret would also match inside ordinary words.
MIN_SECRET_LENGTH = 6
# Keys that were entered on pages since the start; older ones are forgotten.
MAX_ADDED = 100
MAX_TEXT = 16_000
MAX_DEPTH = 100
# Unicode categories of characters that are invisible or affect the characters around them.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean(value: Any, *, depth: int = 0) -> Any:
    """Return a copy that is safe to store and show: JSON values, redacted, escaped, bounded."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {
            clean_text(str(key)): _clean_item(str(key), inner, depth)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(inner, depth=depth + 1) for inner in value]
    return clean_text(str(value), lines=True)


def _clean_item(name: str, value: Any, depth: int) -> Any:
    return REDACTED if SECRET_NAMES.search(name) else clean(value, depth=depth + 1)


def clean_text(text: str, *, lines: bool = False) -> str:
    """Redact and escape a text, and cut it to MAX_TEXT characters. lines: keep feeds and tabs"""
    # Cut twice: a secret that the first cut splits lies beyond the second cut.
    cleaned = visible(redacted(text[: 2 * MAX_TEXT]), lines=lines)
    if len(text) <= MAX_TEXT:
        return cleaned
    return f"{cleaned[:MAX_TEXT]}… ({len(text):,} characters)"


def redacted(text: str) -> str:
    """Replace everything that matches SECRET_PATTERNS or is a secret of this installation."""
    own = _own.pattern()
    if own is not None:
        text = own.sub(REDACTED, text)
    text = escaped(text)
    for hint, pattern, replacement in SECRET_PATTERNS:
        if hint in text:
            text = pattern.sub(replacement, text)
    return text


def visible(text: str, *, lines: bool = False) -> str:
    """Replace invisible characters by escapes such as `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    allowed = "\n\t" if lines else ""
    return "".join(
        letter
        if letter in allowed or unicodedata.category(letter) not in INVISIBLE_CATEGORIES
        else _escape(letter)
        for letter in text
    )


def on_one_line(text: str, longest: int = 1_000) -> str:
    """Return untrusted text for a console: escaped, at most `longest` characters."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")


def redact_from_now_on(secret: str) -> None:
    """Redact a secret that is not in the settings, in this process."""
    _own.add(secret)


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


class _OwnSecrets:
    """The secrets of the settings and of the pages as one pattern, rebuilt when they change."""

    def __init__(self) -> None:
        self._added: tuple[str, ...] = ()
        self._config: Config | None = None
        self._pattern: re.Pattern[str] | None = None

    def pattern(self) -> re.Pattern[str] | None:
        current = config()
        if current is not self._config:
            secrets = (*_secrets(current), *self._added)
            forms = {form for secret in secrets for form in (secret, quote(secret, safe=""))}
            longest_first = sorted(forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None
            self._config = current
        return self._pattern

    def add(self, secret: str) -> None:
        if len(secret) >= MIN_SECRET_LENGTH and secret not in self._added:
            self._added = (*self._added[-MAX_ADDED + 1 :], secret)
            self._config = None


def _secrets(current: Config) -> Iterator[str]:
    """Yield settings with names of secrets, passwords inside URLs, and SECRET_KEY."""
    texts = {field.name: getattr(current, field.name) for field in fields(current)}
    for name, value in {**texts, "secret_key": settings.SECRET_KEY}.items():
        if not isinstance(value, str):
            continue
        secret = value if SECRET_NAMES.search(name) else urlsplit(value).password or ""
        if len(secret) >= MIN_SECRET_LENGTH:
            yield secret


_own = _OwnSecrets()
