"""The rules of Rust: modules are files, methods stand in `impl` blocks."""

import re
from collections.abc import Sequence

from apps.code.callgraph.facts import Definition, Import
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.rust_facts import UNWRAPS, VISITS
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    NO_VALUES,
    UNKNOWN_VALUES,
    Value,
    Values,
    only,
)
from apps.code.values import words

ROOTS = ("lib.rs", "main.rs")
CRATE_NAME = re.compile(r'(?m)^name\s{0,9}=\s{0,9}"([^"\n]{1,99})"')
MAX_CRATES = 100


class RustRules(Rules):
    family = frozenset({"rust"})
    visits = VISITS
    common = UNWRAPS | words(
        "new default from into iter len push get insert remove is_empty map filter collect next "
        "fmt eq cmp hash contains to_string as_str extend pop clear drain sort join split trim "
        "parse and_then or_else is_some is_none is_ok is_err iter_mut into_iter as_slice as_bytes "
        "write_all flush send recv poll await drop index build"
    )

    def global_name(self, names: Names, path: str, name: str) -> Values:
        if name == "crate":
            root = _crate(names.project, path)
            return only(Value("module", root)) if root else UNKNOWN_VALUES
        if name in ("self", ""):
            return only(Value("module", path))
        if name == "super":
            parent = _parent(names.project, path)
            return only(Value("module", parent)) if parent else UNKNOWN_VALUES
        if values := self._of_stars(names, path, name, exported=False):
            return values
        root = _workspace(names.project, name)
        return only(Value("module", root)) if root else EXTERNAL_VALUES

    def imported(self, names: Names, path: str, each: Import) -> Values:
        if each.module == "self" and not each.exported and each.member.startswith("mod "):
            file = _child(names.project, path, each.member[4:])
            return only(Value("module", file)) if file else UNKNOWN_VALUES
        return self._item(names, path, each.module, each.member)

    def _item(self, names: Names, path: str, module: str, name: str) -> Values:
        """The item of a path such as `crate::a::b`."""
        first, *rest = [*(part for part in module.split("::") if part), name]
        values = (
            names.module_names(path, first)
            if first not in ("crate", "self", "super")
            else NO_VALUES
        )
        values = values or names.global_name(path, first)
        for part in rest:
            if part == "super":
                groups = [names.global_name(value.path, "super") for value in values]
                values = names.union(groups)
            elif part != "self":
                values = names.union(names.member(value, part) for value in values)
        return values or UNKNOWN_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        if name == "super":
            return names.global_name(module.path, "super")
        if own := names.module_names(module.path, name):
            return own
        return self._of_stars(names, module.path, name, exported=True) or UNKNOWN_VALUES

    def _of_stars(self, names: Names, path: str, name: str, *, exported: bool) -> Values:
        """What a name means by `use …::*`; empty if none has it. exported: also by `pub use`"""
        facts = names.project.facts(path)
        for import_ in facts.imports if facts else ():
            if import_.name == "*" and (exported or not import_.exported):
                values = self._item(names, path, import_.module, name)
                if values and not values & (UNKNOWN_VALUES | EXTERNAL_VALUES):
                    return values
        return NO_VALUES

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        own = names.defined(owner.path, name, lambda member: member.owner == definition.name)
        if own:
            return own
        files = [file for file in names.project.defining(name) if file.endswith(".rs")]
        return names.union(
            names.defined(file, name, lambda member: member.owner == definition.name)
            for file in files
        )

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        if each.member.startswith("mod "):
            file = _child(project, path, each.member[4:])
            return [file] if file else ()
        first, *rest = [*(part for part in each.module.split("::") if part), each.member]
        starts = {"crate": _crate(project, path), "self": path, "super": _parent(project, path)}
        at = starts[first] if first in starts else _workspace(project, first)
        at = at or (_child(project, path, first) if first not in starts else None)
        for part in rest:
            if not at:
                break
            inner = _parent(project, at) if part == "super" else _child(project, at, part)
            if not inner:
                break
            at = inner
        return [at] if at and at != path else ()


def _crate(project: Project, path: str) -> str | None:
    """The file of the root module of the crate that a file is part of."""
    folder = folder_of(path)
    while True:
        root = project.tree.first(*(f"{folder}/{name}".lstrip("/") for name in ROOTS))
        if root or not folder:
            return root
        folder = folder_of(folder)


def _child(project: Project, path: str, name: str) -> str | None:
    """The file of a module that a file declares."""
    folder, last = folder_of(path), path.rpartition("/")[2]
    if last not in (*ROOTS, "mod.rs"):
        folder = join(folder, last.removesuffix(".rs"))
    return project.tree.first(join(folder, f"{name}.rs"), join(folder, f"{name}/mod.rs"))


def _parent(project: Project, path: str) -> str | None:
    folder, last = folder_of(path), path.rpartition("/")[2]
    if last == "mod.rs":
        folder = folder_of(folder)
    elif last in ROOTS:
        return None
    names = [join(folder, name) for name in ("mod.rs", *ROOTS)]
    return project.tree.first(*names, f"{folder}.rs")


def _workspace(project: Project, name: str) -> str | None:
    """The root module of a crate of the repository."""
    for manifest in project.tree.by_name.get("Cargo.toml", ())[:MAX_CRATES]:
        match = CRATE_NAME.search((project.text(manifest) or "")[:20_000])
        if match and match[1].replace("-", "_") == name:
            return project.tree.first(join(folder_of(manifest), "src/lib.rs"))
    return None
