"""The rules of JavaScript and TypeScript: which names a file has, and where imports lead."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from apps.code.callgraph.facts import Definition, Import, words
from apps.code.callgraph.javascript_facts import NODES, TYPED_NODES, VISITS
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.scopes import Scopes
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    NO_VALUES,
    UNKNOWN_VALUES,
    Value,
    Values,
    only,
)

SUFFIXES = (
    *("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"),
    *("/index.ts", "/index.tsx", "/index.d.ts", "/index.js", "/index.jsx", "/index.mjs"),
)
# Imports name the compiled file.
COMPILED = re.compile(r"\.([mc]?)js(x?)\Z")
COMMENTS = re.compile(r"(?m)^[ \t]*//[^\n]*$|,(?=\s*[}\]])")
# Files of settings that are read.
MAX_SETTINGS = 100
MAX_SETTINGS_CHARS = 100_000


class JavaScriptRules(Rules):
    name = "javascript"
    family = frozenset({"javascript", "jsx", "typescript", "tsx"})
    nodes = NODES
    more_nodes = {
        "javascript": " field_definition",
        "typescript": TYPED_NODES,
        "tsx": TYPED_NODES,
    }
    common = words(
        "map filter forEach reduce push pop shift slice splice join concat find some every "
        "includes indexOf keys values entries sort reverse flat flatMap at fill get set has "
        "delete add clear then catch finally split replace replaceAll match matchAll trim "
        "toString toLowerCase toUpperCase startsWith endsWith padStart padEnd test exec call "
        "apply bind log error warn info debug charCodeAt charAt substring substr repeat "
        "hasOwnProperty valueOf toFixed next return throw on off emit once addEventListener "
        "removeEventListener dispatchEvent close enqueue resolve reject write read end destroy"
    )

    def visit(self, scopes: Scopes, node: Any) -> None:
        VISITS[node.type](scopes, node)

    def global_name(self, names: Names, path: str, name: str) -> Values:
        # Scripts share their globals; modules import what they use.
        facts = names.project.facts(path)
        return EXTERNAL_VALUES if facts and facts.imports else UNKNOWN_VALUES

    def imported(self, names: Names, path: str, each: Import) -> Values:
        if not each.module:  # an export of a name of this file
            return names.module_names(path, each.member) or UNKNOWN_VALUES
        files = self.import_paths(names.project, path, each)
        if not files:
            return UNKNOWN_VALUES if each.module.startswith(".") else EXTERNAL_VALUES
        module = Value("module", files[0])
        if each.member in ("", "*"):
            assigned = self._exports(names, files[0], "=") if not each.member else NO_VALUES
            return assigned or only(module)
        return names.member(module, each.member)

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        values = self._exports(names, module.path, name)
        if values or name == "default":
            return values or self._exports(names, module.path, "=") or UNKNOWN_VALUES
        own = names.module_names(module.path, name)
        if own and own != UNKNOWN_VALUES:
            return own
        facts = names.project.facts(module.path)
        for export in facts.exports.get("*", ()) if facts else ():
            for file in self.import_paths(names.project, module.path, export):
                values = names.member(Value("module", file), name)
                if values and values != UNKNOWN_VALUES:
                    return values
        assigned = self._exports(names, module.path, "=")
        members = [names.member(value, name) for value in assigned]
        return names.union(members) if members else own or UNKNOWN_VALUES

    def _exports(self, names: Names, path: str, name: str) -> Values:
        """What a file exports by this name in a statement of its own; empty if it does not."""
        facts = names.project.facts(path)
        exports = facts.exports.get(name, ()) if facts else ()
        values = names.union(self.imported(names, path, export) for export in exports)
        return values or (names.module_names(path, name) if name == "default" else NO_VALUES)

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        return names.defined(owner.path, name, lambda member: member.owner == definition.name)

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        if not each.module:
            return ()
        if each.module.startswith("."):
            file = _file(project, join(folder_of(path), each.module))
            return [file] if file else ()
        for stem in _aliases(project, path, each.module):
            if file := _file(project, stem):
                return [file]
        return ()


def _file(project: Project, stem: str) -> str | None:
    """The file that an import of a path means."""
    file = project.tree.first(*(f"{stem}{suffix}" for suffix in SUFFIXES))
    if file is None and COMPILED.search(stem):
        source = COMPILED.sub(r".\1ts\2", stem)
        file = project.tree.first(source, f"{source}x", COMPILED.sub(r".\1js\2x", stem))
    return file


def _aliases(project: Project, path: str, module: str) -> Iterator[str]:
    """Stems that a module may mean by `paths` of a tsconfig, or as a package of the repository."""
    folder = folder_of(path)
    while True:
        for name in ("tsconfig.json", "tsconfig.base.json", "jsconfig.json"):
            options = _options(project, f"{folder}/{name}".lstrip("/"))
            yield from _by_paths(options, folder, module)
        if not folder:
            break
        folder = folder_of(folder)
    name, _, rest = _package(module)
    for manifest in project.tree.by_name.get("package.json", ())[:MAX_SETTINGS]:
        if _settings(project, manifest).get("name") == name:
            inside = folder_of(manifest)
            for base in (f"{inside}/src", inside, f"{inside}/lib"):
                yield join(base, rest or "index")


def _package(module: str) -> tuple[str, str, str]:
    """Name of a package, "/", and the path in it."""
    if module.startswith("@"):
        scope, _, rest = module.partition("/")
        name, slash, inner = rest.partition("/")
        return f"{scope}/{name}", slash, inner
    return module.partition("/")


def _options(project: Project, path: str) -> dict[str, Any]:
    options = _settings(project, path).get("compilerOptions")
    return options if isinstance(options, dict) else {}


def _by_paths(options: dict[str, Any], folder: str, module: str) -> Iterator[str]:
    base = options.get("baseUrl")
    root = join(folder, base) if isinstance(base, str) else folder
    paths = options.get("paths")
    for pattern, places in paths.items() if isinstance(paths, dict) else ():
        head, star, tail = pattern.partition("*")
        if module == pattern or (star and module.startswith(head) and module.endswith(tail)):
            inner = module[len(head) : len(module) - len(tail)] if star else ""
            for place in places if isinstance(places, list) else ():
                yield join(root, str(place).replace("*", inner))
    if isinstance(base, str):
        yield join(root, module)


def _settings(project: Project, path: str) -> dict[str, Any]:
    """The JSON of a file of settings, with comments; {} if it is not there or is not valid."""
    if path not in project.tree.paths:
        return {}
    source = (project.text(path) or "")[:MAX_SETTINGS_CHARS]
    for candidate in (source, COMMENTS.sub("", source)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return {}
