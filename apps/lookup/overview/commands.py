"""How a repository is built, tested and run: what its manifests say, each with the line."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from shlex import quote
from typing import NamedTuple

import re2

from apps.lookup.overview.sizes import purpose_of
from apps.lookup.relations.entry_points import json_object
from apps.lookup.relations.types import Relation, Role, one_line
from apps.lookup.symbols.project import RootProject

# Characters of a manifest, folders above it, manifests of one kind, and rows of a role.
MAX_TEXT, MAX_DEPTH, MAX_MANIFESTS, MAX_ROWS = 200_000, 1, 3, 3
# Commands of one file that are looked at.
MAX_COMMANDS, MAX_SCRIPTS = 200, 500
MAX_NAME = 60  # characters of a target or script

_ROLES: tuple[tuple[Role, "re.Pattern[str]"], ...] = (
    ("tests", re.compile(r"(?:unit[-_:]?|e2e[-_:]?)?tests?(?:[-_:](?:all|unit|ci))?|check|spec")),
    ("build", re.compile(r"build|all|compile|install|dist|package")),
    ("run", re.compile(r"start|dev|serve|run|server|up")),
)
# Words of a command of a workflow that runs tests or builds.
_CI_TESTS = re2.compile(r"\b(?:pytest|tox|nox|ctest|phpunit|rspec|tests?|unittest|verify)\b")
_CI_BUILDS = re2.compile(r"\b(?:build|compile|make|assemble|package)\b")
_CI_STEP = re2.compile(r"^\s*(?:-\s+)?(run:|-)\s+(.{1,300})$")
_NO_COMMAND = re2.compile(
    r"^[|>&{\[#]|^\w[\w-]*:(?:\s|$)|^(?:sudo )?(?:apt|apt-get|apk|brew|choco|dnf|pacman|yum) "
)
_TARGET = re2.compile(r"^([A-Za-z][\w.-]{0,59}):(?:[^=]|$)")
_JUST = re2.compile(r"^@?([A-Za-z][\w-]{0,59})(?:\s+[\w='\"+*-]+)*\s*:(?:[^=]|$)")
_RAKE = re2.compile(r"^\s*(?:task|Rake::TestTask\.new)[ (]:?['\"]?(\w{1,59})")
_SECTION = re2.compile(r"^\s*\[+([^\]]{1,80})\]+")
_GRADLE = ("build.gradle", "build.gradle.kts")
CI_FOLDERS = (".github/workflows", ".circleci")
CI_FILES = (".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile")
_WORKFLOW = re2.compile(r"test|ci|build|main|check|config")
ORDER: tuple[Role, ...] = ("build", "tests", "run")


class _Command(NamedTuple):
    role: Role
    text: str  # what to type
    line: int  # 1-based


# The commands of a manifest, by its project, path and text.
_Reader = Callable[[RootProject, str, str], Iterator[_Command]]


def commands_of(project: RootProject) -> list[Relation]:
    """What builds, tests and runs a repository, at most MAX_ROWS each: the commands that manifests
    of its folder name, otherwise of the folders in it, then those of CI."""
    rows = [*_rows(project, _manifests(project))]
    named = {row.role for row in rows}
    rows += [row for row in _rows(project, _workflows(project)) if row.role not in named]
    counts: Counter[Role] = Counter()
    shown: dict[tuple[str, str], Relation] = {}
    for row in rows:
        key = row.role, row.of
        if key not in shown and counts[row.role] < MAX_ROWS:
            counts[row.role] += 1
            shown[key] = row
    return sorted(shown.values(), key=lambda row: ORDER.index(row.role))


def _rows(project: RootProject, manifests: Iterable[tuple[str, _Reader]]) -> Iterator[Relation]:
    for path, read in manifests:
        folder = path.rpartition("/")[0]
        if purpose_of(f"{folder}/"):
            continue
        for _, own in project.lines_in_time([path]):
            text, place = "\n".join(own)[:MAX_TEXT], project.place(path)
            lines = text.split("\n")
            for role, command, number in islice(read(project, path, text), MAX_COMMANDS):
                line = one_line(lines[number - 1])
                yield Relation(role, place, number, line, "", one_line(command))


def _manifests(project: RootProject) -> Iterator[tuple[str, _Reader]]:
    """The files that are read, nearest to the top first."""
    for name, read in _READERS.items():
        paths = project.tree.by_name.get(name, ())
        near = [path for path in paths if path.count("/") <= MAX_DEPTH]
        top = min((path.count("/") for path in near), default=0)
        own = sorted(path for path in near if path.count("/") == top)
        yield from ((path, read) for path in own[:MAX_MANIFESTS] if _has_no_other(project, path))


def _workflows(project: RootProject) -> Iterator[tuple[str, _Reader]]:
    """The files of CI whose name says that they test or build."""
    inside = [path for folder in CI_FOLDERS for path in project.tree.folders.get(folder, ())]
    own = [path for path in inside if _WORKFLOW.search(path.rpartition("/")[2].lower())]
    own.sort(key=lambda path: (len(path), path))  # test.yml before test-of-the-container.yml
    for path in [*own[:MAX_MANIFESTS], *filter(project.file, CI_FILES)]:
        yield path, _ci


def _has_no_other(project: RootProject, path: str) -> bool:
    """Whether a manifest below the top is of a repository without one at the top: it is of one
    package among several, otherwise."""
    return "/" not in path or not any(project.file(name) for name in _READERS)


# --- readers --------------------------------------------------------------------------------------


def _role(name: str) -> Role | None:
    return next((role for role, pattern in _ROLES if pattern.fullmatch(name.lower())), None)


def _in(path: str, command: str) -> str:
    """A command that is run in the folder of a manifest, whose name may be anything."""
    folder = path.rpartition("/")[0]
    return f"cd {quote(folder)} && {command}" if folder else command


def _targets(pattern: "re2._Regexp[str]", start: str) -> _Reader:
    def read(_: RootProject, path: str, text: str) -> Iterator[_Command]:
        for number, line in enumerate(text.split("\n"), 1):
            match = pattern.match(line)
            if match and (role := _role(match[1])):
                yield _Command(role, _in(path, f"{start} {match[1]}"), number)

    return read


def _package_json(project: RootProject, path: str, text: str) -> Iterator[_Command]:
    scripts = json_object(text).get("scripts")
    lines = text.split("\n")
    program = _package_manager(project, path)
    first = next((n for n, line in enumerate(lines) if '"scripts"' in line), 0)
    for name in islice(scripts, MAX_SCRIPTS) if isinstance(scripts, dict) else ():
        role = _role(name) if len(name) <= MAX_NAME else None
        found = (n for n in range(first, len(lines)) if f'"{name}"' in lines[n])
        if role and (at := next(found, None)) is not None:
            yield _Command(role, _in(path, f"{program} run {name}"), at + 1)


def _package_manager(project: RootProject, path: str) -> str:
    if path.endswith("composer.json"):
        return "composer"
    folder = path.rpartition("/")[0]
    locks = {"pnpm-workspace.yaml": "pnpm", "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}
    locks |= {".yarnrc.yml": "yarn", "bun.lock": "bun", "bunfig.toml": "bun"}
    text = project.text(path) or ""
    if match := re2.search(r'"packageManager":\s*"(pnpm|yarn|bun|npm)@', text[:MAX_TEXT]):
        return str(match[1])
    names = (f"{folder}/{lock}" if folder else lock for lock in locks)
    return next((locks[n.rpartition("/")[2]] for n in names if project.file(n)), "npm")


def _sections(*rules: tuple[str, Role, str]) -> _Reader:
    """A reader of a file whose sections say that commands work. rules: a regular expression for
    the name of a section, the role, the command"""

    def read(_: RootProject, path: str, text: str) -> Iterator[_Command]:
        for number, line in enumerate(text.split("\n"), 1):
            if match := _SECTION.match(line):
                for name, role, command in rules:
                    if re2.fullmatch(name, match[1].strip()):
                        yield _Command(role, _in(path, command), number)

    return read


def _always(build: str, tests: str, mark: str = "") -> _Reader:
    """A reader of a file whose name says that commands work. mark: begins the line that is
    quoted; the first line with text otherwise"""

    def read(_: RootProject, path: str, text: str) -> Iterator[_Command]:
        lines = text.split("\n")
        marked = [n for n, line in enumerate(lines, 1) if mark and line.strip().startswith(mark)]
        filled = [n for n, line in enumerate(lines, 1) if line.strip()]
        line = next(iter(marked or filled), 1)
        if build:
            yield _Command("build", _in(path, build), line)
        if tests:
            yield _Command("tests", _in(path, tests), line)

    return read


def _wrapped(program: str, script: str, build: str, mark: str) -> _Reader:
    """As `_always`, for a program for which a repository may have a script."""

    def read(project: RootProject, path: str, text: str) -> Iterator[_Command]:
        start = f"./{script}" if project.file(script) else program
        return _always(f"{start} {build}", f"{start} test", mark)(project, path, text)

    return read


def _cmake(_: RootProject, path: str, text: str) -> Iterator[_Command]:
    lines = list(enumerate(text.split("\n"), 1))
    rules: tuple[tuple[str, Role, str], ...] = (
        ("project", "build", "cmake -B build && cmake --build build"),
        ("enable_testing", "tests", "ctest --test-dir build"),
    )
    for word, role, command in rules:
        at = [n for n, line in lines if line.lower().lstrip().startswith(f"{word}(")]
        if at:
            yield _Command(role, _in(path, command), at[0])


def _ci(_: RootProject, path: str, text: str) -> Iterator[_Command]:
    """The commands of CI that test or build: `run: make test`, a line below `run: |`, or
    `- make test`."""
    block = -1  # indentation of the `run: |` above
    for number, line in enumerate(text.split("\n"), 1):
        indent = len(line) - len(line.lstrip())
        block = -1 if line.strip() and indent <= block else block
        match = _CI_STEP.match(line)
        if match and match[2][:1] in "|>":
            block = indent
            continue
        if block < 0 and (not match or (match[1] == "-" and path.startswith(".github"))):
            continue
        command = (line.strip() if block >= 0 else match[2] if match else "").strip("'\"")
        if _NO_COMMAND.search(command):
            continue
        if _CI_TESTS.search(command):
            yield _Command("tests", command, number)
        elif _CI_BUILDS.search(command):
            yield _Command("build", command, number)


# By the name of the file, in the order of preference: what is made for people first.
_READERS: dict[str, _Reader] = {
    "Makefile": _targets(_TARGET, "make"),
    "GNUmakefile": _targets(_TARGET, "make"),
    "justfile": _targets(_JUST, "just"),
    "package.json": _package_json,
    "composer.json": _package_json,
    "tox.ini": _sections((r"tox|testenv", "tests", "tox")),
    "noxfile.py": _always("", "nox", "@nox.session"),
    "pyproject.toml": _sections(
        (r"tool\.uv", "build", "uv sync"),
        (r"tool\.poetry", "build", "poetry install"),
        (r"build-system", "build", "pip install ."),
        (r"tool\.tox", "tests", "tox"),
        (r"tool\.pytest(?:\.ini_options)?", "tests", "pytest"),
    ),
    "setup.cfg": _sections(
        (r"metadata", "build", "pip install ."), (r"tool:pytest", "tests", "pytest")
    ),
    "setup.py": _always("pip install .", "", "setup("),
    "Cargo.toml": _sections(
        (r"package|workspace", "build", "cargo build"),
        (r"package|workspace", "tests", "cargo test"),
    ),
    "go.mod": _always("go build ./...", "go test ./...", "module "),
    "pom.xml": _wrapped("mvn", "mvnw", "package", "<project"),
    **dict.fromkeys(_GRADLE, _wrapped("gradle", "gradlew", "build", "plugins")),
    "CMakeLists.txt": _cmake,
    "meson.build": _always(
        "meson setup build && ninja -C build", "meson test -C build", "project("
    ),
    "mix.exs": _always("mix compile", "mix test", "defmodule"),
    "Package.swift": _always("swift build", "swift test", "let package"),
    "Rakefile": _targets(_RAKE, "rake"),
    "build.sbt": _always("sbt compile", "sbt test"),
    "stack.yaml": _always("stack build", "stack test"),
    "pubspec.yaml": _always("dart pub get", "dart test", "name:"),
}
