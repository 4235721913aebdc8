"""The rules of C and C++: one name space for all files, apart from what is `static`."""

from collections.abc import Callable, Sequence

from apps.code.callgraph.c_facts import VISITS
from apps.code.callgraph.facts import PRIVATE, Definition, Import
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.values import EXTERNAL_VALUES, UNKNOWN_VALUES, Value, Values
from apps.code.values import words

# Files that define a name that are looked at.
MAX_FILES = 50
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".metal")


class CRules(Rules):
    family = frozenset({"c", "cpp", "cuda", "metal"})
    sees_members = True
    trusts_unique = True
    visits = VISITS
    only_in = {"abstract_function_declarator": "cuda"}
    common = words(
        "size begin end push_back emplace_back front back empty clear insert erase find at data "
        "get reset release swap str c_str append substr length lock unlock first second count"
    )

    def global_name(self, names: Names, path: str, name: str) -> Values:
        files = [file for file in names.project.defining(name) if file != path and _is_ours(file)][
            :MAX_FILES
        ]
        values = names.union(names.defined(file, name, _visible_in(file)) for file in files)
        if not values:
            return EXTERNAL_VALUES
        return values if len({value.path for value in values}) == 1 else UNKNOWN_VALUES

    def type_named(self, names: Names, path: str, name: str) -> Values:
        return names.module_names(path, name) or names.global_name(path, name)

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        files = [file for file in names.project.defining(name) if _is_ours(file)]
        return names.union(
            names.defined(file, name, lambda member: member.owner == definition.name)
            for file in files[:MAX_FILES]
        )

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        if each.module.startswith("::"):
            return ()
        near = join(folder_of(path), each.module)
        if near in project.tree.paths:
            return [near]
        return project.tree.ending(each.module)[:1]


def _is_ours(path: str) -> bool:
    return path.endswith((*SOURCES, ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".cuh"))


def _visible_in(path: str) -> Callable[[Definition], bool]:
    """Whether other files see a definition of a file by its bare name. What is `static` in a header
    is there for those that include it."""
    hidden = {PRIVATE} if path.endswith(SOURCES) else set()
    return lambda definition: not (definition.owner or hidden & {*definition.flags})
