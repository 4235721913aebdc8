"""The rules of Python."""

import builtins
import sys
from collections.abc import Sequence

from apps.code.callgraph.facts import Import
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.python_facts import VISITS
from apps.code.callgraph.rules import Names, Rules, star_imports
from apps.code.callgraph.values import EXTERNAL_VALUES, UNKNOWN_VALUES, Value, Values, known, only

BUILTINS = frozenset(dir(builtins))
SUFFIXES = (".py", ".pyi", "/__init__.py", "/__init__.pyi")
# Folders that hold packages without being one.
SOURCES = ("", "src", "lib", "python")


class PythonRules(Rules):
    family = frozenset({"python"})
    visits = VISITS

    common = frozenset(
        name
        for kind in (str, bytes, list, dict, set, int, float, tuple)
        for name in dir(kind)
        if not name.startswith("_")
    )

    def global_name(self, names: Names, path: str, name: str) -> Values:
        is_sure = True
        for star in star_imports(names.project, path):
            files = self.import_paths(names.project, path, star)
            is_sure = is_sure and bool(files)
            if files and (values := self._exported(names, files[0], name)):
                return values
        if name in BUILTINS:
            return EXTERNAL_VALUES
        return EXTERNAL_VALUES if is_sure and name.startswith("__") else UNKNOWN_VALUES

    def _exported(self, names: Names, path: str, name: str) -> Values:
        """A name of a file that may itself come from `import *`."""
        own = names.module_names(path, name)
        return own or known(names.member(Value("module", path), name))

    def imported(self, names: Names, path: str, each: Import) -> Values:
        files = self._files(names.project, path, each.module)
        for file in files if each.member else ():
            values = names.member(Value("module", file), each.member)
            if values != UNKNOWN_VALUES:
                return values
        modules = self._submodules(names.project, path, each) if each.member else files
        if modules:
            return only(Value("module", modules[0]))
        # `import a.b` of a namespace package binds `a`, whose members are looked up by path.
        return UNKNOWN_VALUES if files else EXTERNAL_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        own = names.module_names(module.path, name)
        if own and own != UNKNOWN_VALUES:
            return own
        if module.path.endswith(("__init__.py", "__init__.pyi")):
            file = _first(names.project, join(folder_of(module.path), name))
            if file:
                return only(Value("module", file))
        if own:
            return own
        for star in star_imports(names.project, module.path):
            for file in self.import_paths(names.project, module.path, star)[:1]:
                inner = names.member(Value("module", file), name)
                if inner and inner != UNKNOWN_VALUES:
                    return inner
        return UNKNOWN_VALUES

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        is_of_module = each.member in ("", "*")
        modules = [] if is_of_module else self._submodules(project, path, each)
        return (modules or self._files(project, path, each.module))[:1]

    def _submodules(self, project: Project, path: str, each: Import) -> Sequence[str]:
        """The files of a module that `from module import member` may mean."""
        dot = "" if each.module.endswith(".") else "."
        return self._files(project, path, f"{each.module}{dot}{each.member}")

    def _files(self, project: Project, path: str, module: str) -> Sequence[str]:
        """The files that a module may be."""
        level = len(module) - len(module.lstrip("."))
        name = module[level:].replace(".", "/")
        if level:
            folder = folder_of(path)
            for _ in range(level - 1):
                folder = folder_of(folder)
            file = _first(project, join(folder, name) if name else folder)
            return [file] if file else []
        # Absolute names begin at a folder of sources: one above the file that is no package, or a
        # usual one.
        folder = folder_of(path)
        roots = [folder]
        while folder:
            folder = folder_of(folder)
            roots.append(folder)
        places = [*(root for root in roots if not _is_package(project, root)), *SOURCES]
        if module.partition(".")[0] in sys.stdlib_module_names:
            # A package's own `typing.py` is imported as `package.typing`, also by its folders.
            places = [place for place in places if not _is_in_package(project, place)]
        files = (_first(project, join(fromkey, name)) for fromkey in dict.fromkeys(places))
        return [file for file in files if file and file != path]


def _is_package(project: Project, folder: str) -> bool:
    return project.tree.first(join(folder, "__init__.py"), join(folder, "__init__.pyi")) is not None


def _is_in_package(project: Project, folder: str) -> bool:
    """Whether a folder, or one above it, is a package."""
    while folder and not _is_package(project, folder):
        folder = folder_of(folder)
    return _is_package(project, folder)


def _first(project: Project, stem: str) -> str | None:
    return project.tree.first(*(f"{stem}{suffix}".lstrip("/") for suffix in SUFFIXES))
