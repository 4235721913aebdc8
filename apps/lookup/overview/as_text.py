"""Languages and modules as texts: of the fields of `LanguageSize` and `Module`, as outputs have
them."""

from collections.abc import Mapping
from typing import Any

from apps.core.values.texts import counted

# Characters of a name.
MAX_NAME = 40


def language_text(language: Mapping[str, Any]) -> str:
    """`python: 24 files, 9,120 lines, 93 %`."""
    lines = "" if language["lines"] is None else f"{counted(language['lines'], 'line')}, "
    return f"{language['name']}: {counted(language['files'], 'file')}, {lines}{percent(language)}"


def percent(language: Mapping[str, Any]) -> str:
    """`93 %`. `100 %` if it is all, and at least `1 %`."""
    share = language["share"]
    return f"{100 if share == 1 else min(99, max(1, round(share * 100)))} %"


def module_text(module: Mapping[str, Any]) -> str:
    """`src/flask/: 24 files, python: app, cli`, or `tests/: 30 files, tests`."""
    facts = [counted(module["files"], "file"), module["purpose"] or module["language"]]
    names = ", ".join(cut(part, MAX_NAME) for part in module["parts"])
    parts = f": {names}" if names else ""
    return f"{module['path'] or './'}: {', '.join(filter(None, facts))}{parts}"


def cut(text: str, length: int) -> str:
    """The first characters of a text; `…` says that there are more."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
