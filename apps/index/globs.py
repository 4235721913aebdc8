"""The path filter: the beginning of a path, or a glob, as `fnmatch` reads it.

`*` also matches `/`. As in shells, `{a,b}` stands for either, and `**/` for any folder or none.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import lru_cache
from glob import escape
from itertools import islice
from unicodedata import normalize

WILDCARDS = "*?["
MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")


class TooManyAlternatives(ValueError):
    """The braces of a glob stand for more than MAX_ALTERNATIVES globs."""


@lru_cache(maxsize=256)
def patterns(path: str) -> tuple[str, ...]:
    """The patterns for `fnmatch`, of which a path must match one.

    The first has no special meaning: a folder may be called `[id]`. Raises TooManyAlternatives.
    """
    globs = list(islice(_alternatives(path), MAX_ALTERNATIVES + 1))
    if len(globs) > MAX_ALTERNATIVES:
        raise TooManyAlternatives(path)
    ends = "" if has_wildcards(path) else "*"
    # A set may also be negated with ^.
    read = [f"{glob.replace('[^', '[!')}{ends}" for glob in globs]
    return tuple(dict.fromkeys([f"{escape(path)}*", *read]))


def matches(path: str, filter_path: str) -> bool:
    """Whether a path passes the filter. Takes time linear in the length of the path."""
    return _compiled(_composed(filter_path), patterns).fullmatch(_composed(path)) is not None


def _area_patterns(path: str) -> tuple[str, ...]:
    """The patterns of an area (`index.types.Area`): `src` is a file or a folder, and no other file
    whose name begins so. Raises TooManyAlternatives."""
    all_globs = patterns(path)
    plain = 1 if has_wildcards(path) else len(all_globs)
    globs = list(all_globs[plain:])
    for stem in (pattern.removesuffix("*") for pattern in all_globs[:plain]):
        globs += [f"{stem}*"] if stem.endswith("/") else [stem, f"{stem}/*"]
    return tuple(globs)


def is_in_area(path: str, area_path: str) -> bool:
    """Whether a path is in an area. Takes time linear in the length of the path."""
    return _compiled(_composed(area_path), _area_patterns).fullmatch(_composed(path)) is not None


def _composed(path: str) -> str:
    """The path in NFC, as people type it. macOS writes names in NFD."""
    return path if path.isascii() else normalize("NFC", path)


def has_wildcards(path: str) -> bool:
    return any(mark in path for mark in WILDCARDS)


def _alternatives(glob: str) -> Iterator[str]:
    """The globs without braces and `**`."""
    braces = _BRACES.search(glob)
    if braces:
        before, after = glob[: braces.start()], glob[braces.end() :]
        for alternative in braces[1].split(","):
            yield from _alternatives(before + alternative + after)
    elif "**/" in glob:
        before, _, after = glob.partition("**/")
        # Elsewhere than at the beginning of a name, it is a `*` and a slash.
        if not before or before.endswith("/"):
            yield from _alternatives(before + after)
        yield from _alternatives(f"{before}*/{after}")
    else:
        yield glob


@lru_cache(maxsize=512)
def _compiled(path: str, globs_of: Callable[[str], Iterable[str]]) -> re.Pattern[str]:
    # fnmatch makes each * atomic.
    return re.compile("|".join(map(translate, globs_of(path))))
