"""The rules of Go: a package is a folder."""

import re
from collections.abc import Iterator, Sequence

from apps.code.callgraph.facts import Definition, Import
from apps.code.callgraph.go_facts import VISITS
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules, star_imports
from apps.code.callgraph.values import EXTERNAL_VALUES, UNKNOWN_VALUES, Value, Values, only
from apps.code.values import words

MODULE_LINE = re.compile(r"(?m)^module[ \t]+(\S+)")
# Files go.mod that are read.
MAX_MODULES = 50


class GoRules(Rules):
    family = frozenset({"go"})
    constructs = False
    visits = VISITS
    common = words("Error String Close Read Write Len Less Swap Lock Unlock")

    def global_name(self, names: Names, path: str, name: str) -> Values:
        values = self._package_name(names, path, name)
        if values:
            return values
        for star in star_imports(names.project, path):
            if files := self.import_paths(names.project, path, star):
                return self._package_name(names, files[0], name) or UNKNOWN_VALUES
        return EXTERNAL_VALUES

    def _package_name(self, names: Names, path: str, name: str) -> Values:
        """What a name means in the package of a file; empty if the package does not have it."""
        groups = [names.module_names(file, name) for file in self._files(names.project, path, name)]
        return names.union(groups)

    def _files(self, project: Project, path: str, name: str) -> Iterator[str]:
        """The files of a package that define a name."""
        folder, facts = folder_of(path), project.facts(path)
        for file in project.defining(name):
            if folder_of(file) != folder or not file.endswith(".go"):
                continue
            if file.endswith("_test.go") and not path.endswith("_test.go"):
                continue
            other = project.facts(file)
            if facts and other and facts.package == other.package:
                yield file

    def type_named(self, names: Names, path: str, name: str) -> Values:
        return names.module_names(path, name) or self._package_name(names, path, name)

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        return names.union(
            names.defined(file, name, lambda member: member.owner == definition.name)
            for file in self._files(names.project, owner.path, name)
        )

    def imported(self, names: Names, path: str, each: Import) -> Values:
        files = self.import_paths(names.project, path, each)
        return only(Value("module", files[0])) if files else EXTERNAL_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        return self._package_name(names, module.path, name) or UNKNOWN_VALUES

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        for manifest in project.tree.by_name.get("go.mod", ())[:MAX_MODULES]:
            match = MODULE_LINE.search((project.text(manifest) or "")[:10_000])
            prefix = match[1].strip('"') if match else ""
            if prefix and (each.module == prefix or each.module.startswith(f"{prefix}/")):
                folder = join(folder_of(manifest), each.module[len(prefix) + 1 :])
                return _sources(project, folder)
        return ()


def _sources(project: Project, folder: str) -> Sequence[str]:
    files = [file for file in project.tree.folders.get(folder, ()) if file.endswith(".go")]
    return sorted(files, key=lambda file: file.endswith("_test.go"))
