"""What the resolver asks about a repository."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from posixpath import normpath
from typing import Protocol

from apps.code.callgraph.facts import Facts


class Project(Protocol):
    """The files of one repository. Paths are relative to it, with slashes."""

    def facts(self, path: str) -> Facts | None:
        """The facts of a file; None if there is no such file, or it must not be read any more."""

    def defining(self, name: str) -> Sequence[str]:
        """Paths of the files that define a name, of any kind."""

    def text(self, path: str) -> str | None:
        """The text of a small file such as `go.mod`; None if there is none."""

    @property
    def tree(self) -> "Tree":
        """All files."""


class Tree:
    """The paths of a repository, and what a module can mean among them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = frozenset(paths)

    @cached_property
    def folders(self) -> Mapping[str, Sequence[str]]:
        """Folder → paths of the files directly in it. The folder of the repository is ""."""
        return self._by_part(0)

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[str]]:
        """Last name of a path → paths."""
        return self._by_part(2)

    def _by_part(self, part: int) -> Mapping[str, Sequence[str]]:
        table: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            table.setdefault(path.rpartition("/")[part], []).append(path)
        return table

    def first(self, *paths: str) -> str | None:
        """The first of some paths that is a file."""
        return next((path for path in paths if path in self.paths), None)

    def ending(self, path: str) -> Sequence[str]:
        """The files whose path ends with these names, the shortest path first."""
        name = path.rpartition("/")[2]
        files = [p for p in self.by_name.get(name, ()) if p == path or p.endswith(f"/{path}")]
        return sorted(files, key=lambda file: (file.count("/"), file))


def join(folder: str, path: str) -> str:
    """A relative path joined to a folder, without `.` and `..`; "" for the repository itself.
    Begins with ".." if it leads out of the repository."""
    joined = normpath(f"{folder}/{path}" if folder else path)
    return "" if joined == "." else joined


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]
