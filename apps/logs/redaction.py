"""What no entry may hold: secrets, by the name they stand under, by their look, and our own.

`clean` also makes control, ANSI and bidirectional characters visible, so that no text can forge a
line, colour a terminal or read backwards, wherever an entry is shown.
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
from apps.core.surrogates import escaped

REDACTED = "[redacted]"
# A plural counts ("inputTokens"); a singular is one.
SECRET_NAMES = re.compile(
    r"authorization|passw(or)?d|passphrase|token(?!s)|secret|credential|cookie|csrf|session_?id"
    r"|(api|access|private)[_-]?key",
    re.IGNORECASE,
)
_VALUE = r"""(?:[\[({][^\])}\n]{0,2000}|\\?"[^"\\\n]*\\?"|'[^'\n]*'|[^\s"'&,;\\]+)"""
# What a text must hold, the pattern, what stands there instead. Each is linear: texts come from
# anyone.
LOOKS: tuple[tuple[str, Any, str], ...] = (
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
    # The web server's own words of a request that it gave up: what was asked is nobody's business.
    ("uri=", re2.compile(r"(\buri=[^\s?>]*\?)[^\s>]+"), rf"\1{REDACTED}"),
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
# A password of three letters would be redacted out of every other word.
SHORTEST_SECRET = 6
LONGEST_TEXT = 16_000
DEEPEST = 100
# Characters that move, hide or turn what stands around them, by Unicode's categories.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean(value: Any, *, lines: bool = True, depth: int = 0) -> Any:
    """A copy that may be kept and shown: JSON values only, redacted, visible, of bounded size.

    With `lines`, line feeds and tabs in texts stay as they are.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {
            clean_text(str(key)): _named(str(key), inner, depth) for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(inner, depth=depth + 1) for inner in value]
    return clean_text(str(value), lines=lines)


def _named(name: str, value: Any, depth: int) -> Any:
    return REDACTED if SECRET_NAMES.search(name) else clean(value, depth=depth + 1)


def clean_text(text: str, *, lines: bool = False) -> str:
    """One text, redacted, visible, and cut where it is longer than anyone reads."""
    # Cut twice: a secret that the first cut leaves half of is beyond the second.
    shown = visible(redacted(text[: 2 * LONGEST_TEXT]), lines=lines)
    if len(text) <= LONGEST_TEXT:
        return shown
    return f"{shown[:LONGEST_TEXT]}… ({len(text):,} characters)"


def redacted(text: str) -> str:
    """The text without anything that looks like a secret, or is one of this installation's."""
    own = _own.pattern()
    if own is not None:
        text = own.sub(REDACTED, text)
    text = escaped(text)
    for hint, look, instead in LOOKS:
        if hint in text:
            text = look.sub(instead, text)
    return text


def visible(text: str, *, lines: bool = False) -> str:
    """The text with unseen characters spelled as escapes, such as `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        letter if letter in kept or unicodedata.category(letter) not in UNSEEN else _spelled(letter)
        for letter in text
    )


def on_one_line(text: str, longest: int = 1_000) -> str:
    """Text of others for a console: visible, and cut where it is longer than anyone reads."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")


def _spelled(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


class _OwnSecrets:
    """The settings' secrets as one pattern, made anew when the settings are others."""

    def __init__(self) -> None:
        self._of: Config | None = None
        self._pattern: re.Pattern[str] | None = None

    def pattern(self) -> re.Pattern[str] | None:
        known = config()
        if known is not self._of:
            forms = {
                form for secret in _secrets(known) for form in (secret, quote(secret, safe=""))
            }
            longest_first = sorted(forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None
            self._of = known
        return self._pattern


def _secrets(known: Config) -> Iterator[str]:
    """Values of settings with telling names, passwords within addresses, and the secret key."""
    texts = {field.name: getattr(known, field.name) for field in fields(known)}
    for name, value in {**texts, "secret_key": settings.SECRET_KEY}.items():
        if not isinstance(value, str):
            continue
        secret = value if SECRET_NAMES.search(name) else urlsplit(value).password or ""
        if len(secret) >= SHORTEST_SECRET:
            yield secret


_own = _OwnSecrets()
