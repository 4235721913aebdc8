"""Facts of a file that its path shows, by naming conventions that languages share."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from apps.code.values import words

TEST_WORDS = words("test tests testing spec specs testdata fixture fixtures mock mocks e2e")
EXAMPLE_WORDS = words(
    "example examples demo demos sample samples tutorial tutorials bench benches benchmark "
    "benchmarks"
)
LEGACY_WORDS = words(
    "legacy compat deprecated obsolete shim shims polyfill polyfills vendor vendored thirdparty "
    "third_party"
)
PROSE_SUFFIXES = words(".md .mdx .rst .adoc .txt")
DATA_SUFFIXES = words(
    ".json .yml .yaml .toml .xml .ini .cfg .lock .svg .html .css .csproj .props .targets"
)
DECLARATION_SUFFIXES = (".h", ".hpp", ".hh", ".hxx", ".d.ts", ".pyi", ".mli", ".fsi")
# Files that represent their folder.
INDEX_STEMS = words("__init__ __main__ index mod main lib init package")
REEXPORT_STEMS = words("__init__ index mod package-info")

# Files that say what a package is. A folder with one is a module of its own.
PACKAGE_MANIFESTS = words(
    "package.json deno.json composer.json pyproject.toml setup.py Cargo.toml go.mod pom.xml "
    "build.gradle build.gradle.kts build.sbt CMakeLists.txt mix.exs Gemfile pubspec.yaml "
    "Package.swift stack.yaml dune-project project.godot"
)
# With files that say how something is built. Any folder may have these.
MANIFESTS = PACKAGE_MANIFESTS | words(
    "setup.cfg tox.ini noxfile.py tsconfig.json meson.build Makefile GNUmakefile justfile Rakefile"
)

_WORD = re.compile(r"[a-z0-9]+")
_CAMEL_TEST = re.compile(r"[a-z0-9](?:Tests?|Spec|TestCase)$")
_VERSION = re.compile(r"_?v(\d{1,4})$", re.IGNORECASE)


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders of a path, from the uppermost. Each ends with a slash; a path that does so
    is the last one itself."""
    return (path[: at + 1] for at, letter in enumerate(path) if letter == "/")


@lru_cache(maxsize=20_000)
def kinds(path: str) -> frozenset[str]:
    """The kinds of a file among `test`, `example`, `prose`, `data`, `legacy`; most have none."""
    return frozenset(_kinds(path))


def _kinds(path: str) -> Iterator[str]:
    folder, stem, suffix = _split(path)
    folder, suffix = folder.lower(), suffix.lower()
    folders = set(folder.split("/"))
    named = folders | set(_WORD.findall(folder)) | set(_WORD.findall(stem.lower()))
    if named & TEST_WORDS or _CAMEL_TEST.search(stem):
        yield "test"
    if named & EXAMPLE_WORDS:
        yield "example"
    if named & LEGACY_WORDS:
        yield "legacy"
    if suffix in PROSE_SUFFIXES or folders & {"docs", "doc"}:
        yield "prose"
    if suffix in DATA_SUFFIXES:
        yield "data"


def descriptive_name(path: str) -> str:
    """The name that describes the content: the stem of the file, or the name of its folder if the
    file represents the folder (`parser/__init__.py`, `parser/mod.rs`)."""
    folder, stem, _ = _split(path)
    return (folder.rpartition("/")[2] if stem.lower() in INDEX_STEMS else "") or stem


def is_index(path: str) -> bool:
    """Return True for a file that usually only re-exports definitions of other files."""
    return _split(path)[1].lower() in REEXPORT_STEMS


def _split(path: str) -> tuple[str, str, str]:
    """Folder, stem and suffix. Without pathlib, which takes longer: a search asks this of many
    files."""
    folder, _, name = path.rpartition("/")
    dot = name.rfind(".")
    return (folder, name[:dot], name[dot:]) if 0 < dot < len(name) - 1 else (folder, name, "")


def declarations_beside(paths: Collection[str]) -> set[str]:
    """The paths of declaration files that have an implementation with the same stem (`.h` and
    `.c`)."""
    declaring = [path for path in paths if path.endswith(DECLARATION_SUFFIXES)]
    if not declaring:
        return set()
    implemented = {_first_stem(path) for path in paths if not path.endswith(DECLARATION_SUFFIXES)}
    return {path for path in declaring if _first_stem(path) in implemented}


def _first_stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def superseded(paths: Collection[str], query: str) -> set[str]:
    """The paths in a version folder that has a later sibling (`api/v1/` if there is `api/v2/`),
    unless `query` names that version."""
    versions = {path: parts for path in paths if (parts := _versions(path))}
    if not versions:
        return set()
    latest: dict[str, int] = {}
    for parts in versions.values():
        for parent, number in parts:
            latest[parent] = max(number, latest.get(parent, 0))
    named = {int(number) for number in re.findall(r"\bv(\d{1,4})\b", query.lower())}
    return {
        path
        for path, parts in versions.items()
        if any(number < latest[parent] and number not in named for parent, number in parts)
    }


@lru_cache(maxsize=20_000)
def _versions(path: str) -> tuple[tuple[str, int], ...]:
    """For each path component that is a version: the path before it, and the number."""
    parts = path.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    matches = ((i, _VERSION.match(part)) for i, part in enumerate(parts))
    return tuple(("/".join(parts[:i]), int(match[1])) for i, match in matches if match)
