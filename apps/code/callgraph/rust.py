"""The rules of Rust: modules are files, methods stand in `impl` blocks."""

import re
from collections.abc import Sequence

from apps.code.callgraph.facts import Definition, Import
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules, star_imports
from apps.code.callgraph.rust_facts import UNWRAPS, VISITS
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    NO_VALUES,
    UNKNOWN_VALUES,
    Value,
    Values,
    known,
    only,
    ordered,
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
            return _module(_crate(names.project, path)) or UNKNOWN_VALUES
        if name in ("self", ""):
            return _module(path)
        if name == "super":
            return _module(_parent(names.project, path)) or UNKNOWN_VALUES
        values = self._of_stars(names, path, name)
        return values or _module(_workspace(names.project, name)) or EXTERNAL_VALUES

    def imported(self, names: Names, path: str, each: Import) -> Values:
        if each.module == "self" and each.member.startswith("mod "):
            return _module(_child(names.project, path, each.member[4:])) or UNKNOWN_VALUES
        return self._item(names, path, each.module, each.member)

    def _item(self, names: Names, path: str, module: str, name: str) -> Values:
        """The item of a path such as `crate::a::b`."""
        first, *rest = [*(part for part in module.split("::") if part), name]
        is_word = first in ("crate", "self", "super")
        own = NO_VALUES if is_word else names.module_names(path, first)
        values = own or names.global_name(path, first)
        for part in rest:
            if part == "super":
                groups = [names.global_name(value.path, "super") for value in ordered(values)]
                values = names.union(groups)
            elif part != "self":
                values = names.union(names.member(value, part) for value in ordered(values))
        return values or UNKNOWN_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        if name == "super":
            return names.global_name(module.path, "super")
        own = names.module_names(module.path, name)
        return own or self._of_stars(names, module.path, name) or UNKNOWN_VALUES

    def _of_stars(self, names: Names, path: str, name: str) -> Values:
        """What a name means by `use …::*`; empty if none has it."""
        for star in star_imports(names.project, path):
            values = self._item(names, path, star.module, name)
            if values == known(values):  # it is never empty
                return values
        return NO_VALUES

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        def members(file: str) -> Values:
            return names.defined(file, name, lambda member: member.owner == definition.name)

        files = (file for file in names.project.defining(name) if file.endswith(".rs"))
        return members(owner.path) or names.union(map(members, files))

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


def _module(path: str | None) -> Values:
    """The module of a file; empty without one."""
    return only(Value("module", path)) if path else NO_VALUES


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
