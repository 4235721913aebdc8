"""What a path says of a file, by customs that all languages share."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import PurePosixPath


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


TEST_WORDS = _set("test tests testing spec specs testdata fixture fixtures mock mocks e2e")
EXAMPLE_WORDS = _set(
    "example examples demo demos sample samples tutorial tutorials bench benches benchmark "
    "benchmarks"
)
LEGACY_WORDS = _set(
    "legacy compat deprecated obsolete shim shims polyfill polyfills vendor vendored thirdparty "
    "third_party"
)
PROSE_SUFFIXES = _set(".md .mdx .rst .adoc .txt")
DATA_SUFFIXES = _set(
    ".json .yml .yaml .toml .xml .ini .cfg .lock .svg .html .css .csproj .props .targets"
)
DECLARATION_SUFFIXES = (".h", ".hpp", ".hh", ".hxx", ".d.ts", ".pyi", ".mli", ".fsi")
# Files that stand for their folder.
INDEX_STEMS = _set("__init__ __main__ index mod main lib init package")
REEXPORT_STEMS = _set("__init__ index mod package-info")

_WORD = re.compile(r"[a-z0-9]+")
_CAMEL_TEST = re.compile(r"[a-z0-9](?:Tests?|Spec|TestCase)$")
_VERSION = re.compile(r"_?v(\d{1,4})$", re.IGNORECASE)


def kinds(path: str) -> frozenset[str]:
    """Which of `test`, `example`, `prose`, `data`, `legacy` a file is; most are none."""
    return frozenset(_kinds(PurePosixPath(path)))


def _kinds(path: PurePosixPath) -> Iterator[str]:
    stem = _stem(path)
    folders = {part.lower() for part in path.parts[:-1]}
    words = folders | set(_WORD.findall(" ".join(folders))) | set(_WORD.findall(stem.lower()))
    if words & TEST_WORDS or _CAMEL_TEST.search(stem):
        yield "test"
    if words & EXAMPLE_WORDS:
        yield "example"
    if words & LEGACY_WORDS:
        yield "legacy"
    suffix = path.suffix.lower()
    if suffix in PROSE_SUFFIXES or folders & {"docs", "doc"}:
        yield "prose"
    if suffix in DATA_SUFFIXES:
        yield "data"


def _stem(path: PurePosixPath) -> str:
    """The name without its last suffix: `user.test` of `user.test.ts`."""
    return path.stem


def telling_name(path: str) -> str:
    """The name that tells what is in a file: its own without suffix, or its folder's where the
    file only stands for it (`parser/__init__.py`, `parser/mod.rs`)."""
    parts = PurePosixPath(path)
    stem = _stem(parts)
    if stem.lower() in INDEX_STEMS and parts.parent.name:
        return parts.parent.name
    return stem


def is_index(path: str) -> bool:
    """Whether a file is of the kind that may only pass on what others define."""
    return _stem(PurePosixPath(path)).lower() in REEXPORT_STEMS


def declarations_beside(paths: Collection[str]) -> set[str]:
    """Those that declare what another of `paths` with the same stem defines."""
    declaring = [path for path in paths if path.endswith(DECLARATION_SUFFIXES)]
    if not declaring:
        return set()
    defined = {_first_stem(path) for path in paths if not path.endswith(DECLARATION_SUFFIXES)}
    return {path for path in declaring if _first_stem(path) in defined}


def _first_stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def superseded(paths: Collection[str], said: str) -> set[str]:
    """Those in a folder named by a version beside one of a later version, such as `api/v1/` beside
    `api/v2/`, unless `said` names that version."""
    versions = {path: found for path in paths if (found := _versions(path))}
    if not versions:
        return set()
    latest: dict[str, int] = {}
    for found in versions.values():
        for parent, number in found:
            latest[parent] = max(number, latest.get(parent, 0))
    asked = {int(number) for number in re.findall(r"\bv(\d{1,4})\b", said.lower())}
    return {
        path
        for path, found in versions.items()
        if any(number < latest[parent] and number not in asked for parent, number in found)
    }


@lru_cache(maxsize=20_000)
def _versions(path: str) -> tuple[tuple[str, int], ...]:
    """Each part of a path that is a version: what stands before it, and its number."""
    parts = path.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    matches = ((i, _VERSION.match(part)) for i, part in enumerate(parts))
    return tuple(("/".join(parts[:i]), int(match[1])) for i, match in matches if match)
