"""The rules of JavaScript and TypeScript: which names a file has, and where imports lead."""

from collections.abc import Iterator, Sequence
from typing import Any

from apps.code.callgraph.facts import Definition, Import
from apps.code.callgraph.javascript_components import visit_page
from apps.code.callgraph.javascript_facts import VISITS
from apps.code.callgraph.javascript_packages import (
    component_file,
    component_names,
    file_of,
    imports_itself,
    package_names,
    stems,
)
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
from apps.code.values import words

PAGES = (".vue", ".svelte", ".astro")


class JavaScriptRules(Rules):
    family = frozenset({"javascript", "jsx", "typescript", "tsx", "vue", "svelte", "astro"})
    visits = VISITS
    common = words(
        "map filter forEach reduce push pop shift slice splice join concat find some every "
        "includes indexOf keys values entries sort reverse flat flatMap at fill get set has "
        "delete add clear then catch finally split replace replaceAll match matchAll trim "
        "toString toLowerCase toUpperCase startsWith endsWith padStart padEnd test exec call "
        "apply bind log error warn info debug charCodeAt charAt substring substr repeat "
        "hasOwnProperty valueOf toFixed next return throw on off emit once addEventListener "
        "removeEventListener dispatchEvent close enqueue resolve reject write read end destroy"
    )

    def open_page(self, scopes: Scopes, page: Any) -> None:
        visit_page(scopes, page)

    def global_name(self, names: Names, path: str, name: str) -> Values:
        # Scripts share their globals; modules import what they use.
        project = names.project
        if name == "exports":
            return only(Value("module", path))
        if path.endswith(".vue") and (file := component_file(project, name)):
            return names.member(Value("module", file), "default") | UNKNOWN_VALUES
        facts = project.facts(path)
        is_module = facts is not None and facts.imports and not imports_itself(project)
        return EXTERNAL_VALUES if is_module else UNKNOWN_VALUES

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

    def outer_self(self, path: str) -> Values:
        # The methods of a component of Vue are those of the object that its page exports.
        return only(Value("module", path)) if path.endswith(PAGES) else UNKNOWN_VALUES

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

    def other_names(self, project: Project, path: str) -> Iterator[str]:
        yield from package_names(project, path)
        yield from component_names(path)

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        module = each.module.partition("?")[0]  # `./icon.svg?raw` is for a bundler
        if not module:
            return ()
        if module.startswith("."):
            file = file_of(project, join(folder_of(path), module))
            return [file] if file else ()
        for stem in stems(project, path, module):
            if file := file_of(project, stem):
                return [file]
        return ()
