"""Find where the programs of a repository start."""

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import re2

from apps.code.paths import kinds
from apps.code.values import words
from apps.lookup.deadline import Deadline
from apps.lookup.ingested import known_definitions
from apps.lookup.relations.types import (
    ASIDE,
    Relation,
    Relations,
    Scope,
    first_of_lines,
    line_at,
)
from apps.lookup.symbols.call_types import Certainty
from apps.lookup.symbols.project import RootProject

# Characters of a manifest, manifests of one name, entries of one manifest, and `main` functions.
MAX_MANIFEST, MAX_MANIFESTS, MAX_ENTRIES, MAX_MAINS = 200_000, 40, 12, 60
# Files that are started by their name.
_STARTED = {
    "manage.py": "commands of Django",
    "wsgi.py": "WSGI application",
    "asgi.py": "ASGI application",
    "__main__.py": "python -m",
    "config.ru": "Rack application",
    "artisan": "commands of Laravel",
    "Program.cs": "program",
    "lib.rs": "crate",
}
_PAGES = re2.compile(r"(?:[^/]+/)?(?:(?:public|web|www|app|src|static)/)?index\.html")
_MAIN_KINDS = frozenset({"function", "method", "definition"})
_MAIN_LANGUAGES = words(
    "c cpp go rust java kotlin scala csharp swift dart zig haskell d nim v objc cuda"
)
_COMMAND = re2.compile(r"(?i)(?:CMD|ENTRYPOINT)\s+(.{1,200})")
_SCRIPTS = ("start", "dev", "serve", "server")
_NPM_FILES = ("main", "module")

Entry = tuple[str, str]  # what is started, and a text of the line that says so


def entry_points(scope: Scope, deadline: Deadline) -> Relations:
    """Where programs and libraries start: what manifests name (`[project.scripts]`, `bin` and
    `scripts` of package.json, `[[bin]]`, Dockerfiles, Procfiles), files with a special name,
    functions `main`, and pages. Those near the top come first; tests and examples last.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    found = scope.collect(deadline, lambda project, scope: _Search(project, scope).rows())
    rows = sorted(first_of_lines(found), key=_order)
    return Relations(tuple(rows[: scope.limit]))


def _order(row: Relation) -> tuple[bool, bool, int]:
    path = row.place.path
    return bool(kinds(path) & ASIDE), row.certainty != "proven", path.count("/")


class _Search:
    """The search in one root."""

    def __init__(self, project: RootProject, scope: Scope) -> None:
        self.project, self.visible = project, scope.paths(project.root)
        self._read: dict[str, Sequence[str]] = {}

    def rows(self) -> Iterator[Relation]:
        readers: dict[str, Callable[[str], Iterator[Entry]]] = {
            "pyproject.toml": _pyproject,
            "setup.cfg": _console_scripts,
            "setup.py": _console_scripts,
            "package.json": _package_json,
            "Cargo.toml": _cargo,
            "Procfile": _procfile,
            "Dockerfile": _dockerfile,
            "Containerfile": _dockerfile,
        }
        for name, read in readers.items():
            for path in self._named(name):
                for what, line in islice(read(self._text(path)), MAX_ENTRIES):
                    yield from self._entry(path, what, line)
        for name, what in _STARTED.items():
            for path in self._named(name):
                yield from self._file(path, what)
        yield from self._mains()
        yield from self._scripts()
        for path in sorted(self.visible):
            if path.endswith("index.html") and _PAGES.fullmatch(path):
                yield from self._file(path, "page")

    def _named(self, name: str) -> Sequence[str]:
        paths = [path for path in self.project.tree.by_name.get(name, ()) if path in self.visible]
        return sorted(paths, key=lambda path: (path.count("/"), path))[:MAX_MANIFESTS]

    def _lines(self, path: str) -> Sequence[str]:
        if path not in self._read:
            self._read[path] = dict(self.project.lines_in_time([path])).get(path, ())
        return self._read[path]

    def _text(self, path: str) -> str:
        return "\n".join(self._lines(path))[:MAX_MANIFEST]

    def _entry(self, manifest: str, what: str, line: str) -> Iterator[Relation]:
        """The line of a manifest, and the definition that it names."""
        lines = self._text(manifest).split("\n")
        number = next((at for at, text in enumerate(lines, 1) if line in text), 0)
        if number:
            yield self._row(manifest, number, what)
        if target := self._target(manifest, line):
            path, at, symbol = target
            yield self._row(path, at, what, symbol)

    def _target(self, manifest: str, line: str) -> tuple[str, int, str] | None:
        """The definition of `package.module:function` or the file of `./path.js`."""
        if match := re2.search(r"([\w.]+):(\w+)", line):
            module = match[1].replace(".", "/")
            for ending in (f"{module}.py", f"{module}/__init__.py"):
                for path in self.project.tree.ending(ending)[:1]:
                    if path not in self.visible:
                        return None
                    for symbol in known_definitions(self.project.root, match[2]):
                        if symbol.file_path == path and symbol.name == match[2]:
                            return path, symbol.start_line, symbol.path
                    return path, 1, ""
        folder = manifest.rpartition("/")[0]
        for match in re2.finditer(r"[\w./-]+\.(?:[cm]?[jt]sx?|rs|py|rb)\b", line):
            parts = [folder, match[0].removeprefix("./")]
            path = "/".join(part for part in parts if part)
            if path in self.visible:
                return path, 1, ""
        return None

    def _mains(self) -> Iterator[Relation]:
        symbols = [
            symbol
            for name in ("main", "Main")
            for symbol in known_definitions(self.project.root, name)
            if symbol.name == name
            and symbol.kind in _MAIN_KINDS
            and symbol.language in _MAIN_LANGUAGES
            and symbol.file_path in self.visible
        ]
        symbols.sort(key=lambda symbol: (symbol.file_path.count("/"), symbol.file_path))
        for one in dict.fromkeys(symbols[:MAX_MAINS]):
            yield self._row(one.file_path, one.start_line, "main function", one.path, "possible")

    def _scripts(self) -> Iterator[Relation]:
        """Files of Python that do something when they are run."""
        paths = [path for path in self.project.with_word("__main__") if path in self.visible]
        paths = [path for path in paths if path.endswith(".py") and not kinds(path) & ASIDE]
        for path, lines in self.project.lines_in_time(paths[:MAX_MAINS]):
            for number, line in enumerate(lines, 1):
                if line.startswith("if __name__ =="):
                    yield self._row(path, number, "script", "", "possible")

    def _file(self, path: str, what: str) -> Iterator[Relation]:
        if path in self.visible:
            yield self._row(path, 1, what)

    def _row(
        self,
        path: str,
        line: int,
        what: str,
        symbol: str = "",
        certainty: Certainty = "proven",
    ) -> Relation:
        place, text = self.project.place(path), line_at(self._lines(path), line)
        return Relation("entry point", place, line, text, symbol, what, certainty)


# --- manifests: what they start, and a text of the line ------------------------------------------


def _pyproject(text: str) -> Iterator[Entry]:
    data = _toml(text)
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    for table in (project.get("scripts"), project.get("gui-scripts"), poetry.get("scripts")):
        for name, target in table.items() if isinstance(table, dict) else ():
            if isinstance(target, str):
                yield f"command {name}", _line_with(text, name, target)


def _console_scripts(text: str) -> Iterator[Entry]:
    after = text.partition("console_scripts")[2]
    for match in re2.finditer(r"([\w.-]+)\s*=\s*([\w.]+:\w+)", after[:5_000]):
        yield f"command {match[1]}", match[0]


def _package_json(text: str) -> Iterator[Entry]:
    data = json_object(text)
    if not data:
        return
    commands = data.get("bin")
    if isinstance(commands, str):
        commands = {str(data.get("name") or "bin"): commands}
    for name, target in commands.items() if isinstance(commands, dict) else ():
        yield f"command {name}", _line_with(text, str(target))
    scripts = data.get("scripts")
    for name in _SCRIPTS:
        if isinstance(scripts, dict) and isinstance(scripts.get(name), str):
            yield f"npm run {name}", _line_with(text, f'"{name}"', json.dumps(scripts[name]))
    for name in _NPM_FILES:
        if isinstance(data.get(name), str):
            yield "module", _line_with(text, f'"{name}"', data[name])
    if not any(isinstance(data.get(name), str) for name in (*_NPM_FILES, "exports")):
        yield "module", "./index.js"  # what Node.js loads if nothing is named


def _cargo(text: str) -> Iterator[Entry]:
    data = _toml(text)
    binaries = data.get("bin")
    for binary in binaries if isinstance(binaries, list) else ():
        if isinstance(binary, dict) and isinstance(binary.get("name"), str):
            target = str(binary.get("path") or binary["name"])
            yield f"program {binary['name']}", _line_with(text, target)


def _procfile(text: str) -> Iterator[Entry]:
    for line in text.split("\n"):
        if re2.match(r"[\w-]+:\s*\S", line):
            yield f"process {line.partition(':')[0]}", line


def _dockerfile(text: str) -> Iterator[Entry]:
    for line in text.split("\n"):
        if match := _COMMAND.match(line):
            yield "container", match[0]


def json_object(text: str) -> dict[str, Any]:
    """The object that a text is; {} if it is none."""
    with suppress(ValueError, RecursionError):
        data = json.loads(text)
        return data if isinstance(data, dict) else {}
    return {}


def _toml(text: str) -> dict[str, Any]:
    with suppress(tomllib.TOMLDecodeError, RecursionError):
        return tomllib.loads(text)
    return {}


def _table(data: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        inner = data.get(name)
        data = inner if isinstance(inner, dict) else {}
    return data


def _line_with(text: str, *parts: str) -> str:
    """The first line with all of these texts, else with the last one; the last one itself if it is
    on no line."""
    lines = text.split("\n")
    whole = next((line for line in lines if all(part in line for part in parts)), "")
    return (whole or next((line for line in lines if parts[-1] in line), parts[-1])).strip()
