"""Which files a question is about: the wire keys `path` and `language`, and whether a file fits."""

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Any

from apps.code.languages import FILE_TYPES, known_type
from apps.index.types import Filters

GLOB_MARKS = "*?["
# A glob becomes an expression: matching one takes time in proportion to its length, since fnmatch
# writes atomic groups, but compiling one of a megabyte takes seconds, and SQLite refuses it.
LONGEST_PATH = 1_000


def parse_filters(data: Mapping[str, Any], problems: list[str]) -> Filters:
    """The filters in `{path?, language?}`; what is wrong with them is added to `problems`.

    A path is relative to a repository; a language may also be named by an extension (`ts`).
    """
    path = _text(data, "path", problems).removeprefix("./")
    if len(path) > LONGEST_PATH:
        problems.append(f"path must have at most {LONGEST_PATH:,} characters")
    if "\0" in path:
        problems.append("path must not hold a NUL")
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path):
        problems.append("path must be relative to the repository")
    if ".." in re.split(r"[\\/]", path):
        problems.append("path must not hold ..")
    word = _text(data, "language", problems)
    language = language_named(word)
    if word and not language:
        problems.append(f"language is not known: {word[:40]}")
    # SQLite's way to say "none of these", which the word index is asked in.
    return Filters(path.replace("[!", "[^"), language)


def _text(data: Mapping[str, Any], key: str, problems: list[str]) -> str:
    value = data.get(key) or ""
    if not isinstance(value, str) or (value and not value.strip()):
        problems.append(f"{key} must be a non-empty string when provided")
        return ""
    return value.encode("utf-8", "replace").decode().strip()


def language_named(word: str) -> str:
    """The language of this name or extension, "" where there is none."""
    if not word:
        return ""
    asked = word.lower()
    if any(kind.name == asked for kind in FILE_TYPES):
        return asked
    found = known_type(f"_.{asked}")
    return found.name if found else ""


def fits(filters: Filters, path: str, language: str) -> bool:
    """Whether a file passes all the filters, as the word index has it: `*` may span folders."""
    if filters.language and language != filters.language:
        return False
    if not any(mark in filters.path for mark in GLOB_MARKS):
        return path.startswith(filters.path)
    return _pattern(filters.path).fullmatch(path) is not None


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob.replace("[^", "[!")))
