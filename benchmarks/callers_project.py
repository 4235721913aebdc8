"""A project whose files are parsed in this process, for the benchmark and for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from apps.code.callgraph.extract import facts_of
from apps.code.callgraph.facts import MODULE, Facts
from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.callgraph.project import Tree
from apps.code.chunking import lines_of
from apps.code.languages import known_type


class MemoryProject:
    """A repository in memory: path → text."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self.tree = Tree(list(files))
        self._facts: dict[str, Facts] = {}
        self._defining: dict[str, list[str]] = {}
        for path in sorted(files):
            kind = known_type(path)
            if kind is None or kind.name not in BY_LANGUAGE:
                continue
            facts = self._facts[path] = facts_of(lines_of(files[path]), kind.grammar)
            values = [each for each in facts.bindings if each.scope == MODULE]
            for name in dict.fromkeys(each.name for each in (*facts.definitions, *values)):
                self._defining.setdefault(name, []).append(path)

    @classmethod
    def of_folder(cls, folder: Path, suffixes: Sequence[str]) -> "MemoryProject":
        files = {
            path.relative_to(folder).as_posix(): path.read_text("utf-8", "replace")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
            and path.name.endswith(tuple(suffixes))
            and not path.name.endswith(".d.ts")
        }
        return cls(files)

    @property
    def paths(self) -> Sequence[str]:
        """The files that have facts."""
        return list(self._facts)

    def facts(self, path: str) -> Facts | None:
        return self._facts.get(path)

    def defining(self, name: str) -> Sequence[str]:
        return self._defining.get(name, ())

    def text(self, path: str) -> str | None:
        return self._files.get(path)
