"""What is put before the routes of a router: by its constructor, and where another router, maybe of
another file, mounts it."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import re2

from apps.code.callgraph.facts import MODULE, Import
from apps.code.callgraph.languages import rules_for
from apps.lookup.relations.route_patterns import JAVASCRIPT, QUOTED, joined
from apps.lookup.symbols.project import RootProject

# Mounts in each other, prefixes of one router, files through which a name is imported, and what is
# read of a file by each pattern.
MAX_DEPTH, MAX_PREFIXES, MAX_IMPORTS, MAX_READ = 5, 5, 3, 500
# Characters of a file, of the arguments of a call, and of a prefix.
MAX_TEXT, MAX_ARGUMENTS, MAX_PREFIX = 200_000, 1_000, 1_000
_NAMED = rf"(?:url_)?prefix[\"']?\s*[=:]\s*{QUOTED}"
# By language: how a router is made. Its arguments follow.
_MADE = {
    "python": r"\b(?P<name>\w+)\s*(?::[^=\n]{0,80})?=\s*(?:\w+\.)*\w*(?:APIRouter|Blueprint)\(",
    "javascript": r"\b(?P<name>\w+)\s*(?::[^=\n]{0,80})?=\s*new\s+(?:\w+\.)?\w*Router\(",
    "go": r"\b(?P<name>\w+)\s*:?=\s*(?P<parent>\w+)\.(?:Group|PathPrefix)\(",
}
# How one is mounted: `router` gets what the arguments name.
_MOUNTED = {
    "python": (
        r"\b(?P<router>\w+)\.(?:include_router|register_blueprint)\(",
        rf"{QUOTED}\s*,\s*(?P<include>include)\(",
    ),
    "javascript": (
        rf"\b(?P<router>\w+)\.(?:use|route)\(\s*{QUOTED}\s*,",
        r"\b(?P<router>\w+)\.register\(",
    ),
}
_prefix = re2.compile(_NAMED)
_first = re2.compile(rf"^\s*{QUOTED}")
_made = {language: re2.compile(pattern) for language, pattern in _MADE.items()}
_mounted = {name: [re2.compile(text) for text in texts] for name, texts in _MOUNTED.items()}
# What is mounted: a name, a module in quotes, or a file that is required.
_NAME_FIRST = re2.compile(
    r"^[\s(\[]*(?:\w+\s*=\s*)?(?:[\"'](?P<module>[\w.]+)[\"']|(?P<name>[A-Za-z_][\w.]*))"
)
_REQUIRED = re2.compile(r"\b(?:require|import)\(\s*[\"'`](?P<file>[^\"'`\n]{1,200})[\"'`]")
_NAME_LAST = re2.compile(r"(?P<name>[A-Za-z_$][\w.$]*)(?:\(\))?\s*$")
_OPEN, _CLOSED = "([{", ")]}"

Router = tuple[str, str]  # path of the file, name in it; "" for all routes of the file


class _Mount(NamedTuple):
    onto: Router
    prefix: str
    replaces: bool  # it stands for the prefix that the router has by its constructor


class Mounts:
    """The prefixes of the routers of one root."""

    def __init__(self, project: RootProject) -> None:
        self.project = project
        self._own: dict[Router, list[tuple[int, str]]] = defaultdict(list)  # row, prefix
        self._mounts: dict[Router, list[_Mount]] = defaultdict(list)

    def read(self, path: str, language: str, lines: Sequence[str]) -> None:
        """Read what a file makes and mounts, until the deadline."""
        name = "javascript" if language in JAVASCRIPT else language
        if name not in _made:
            return
        text = "\n".join(lines)[:MAX_TEXT]
        for match in islice(_made[name].finditer(text), MAX_READ):
            groups, arguments = match.groupdict(), _arguments(text, match.end())
            found = (_first if name == "go" else _prefix).search(arguments)
            row = text.count("\n", 0, match.start())
            above = self._of_constructor((path, groups.get("parent") or ""), row)
            prefix = joined(above, found["path"] if found else "")[:MAX_PREFIX]
            self._own[path, groups["name"]].append((row, prefix))
        for pattern in _mounted.get(name, ()):
            for match in islice(pattern.finditer(text), MAX_READ):
                if self.project.deadline.is_over:
                    return
                self._mount(path, match.groupdict(), _arguments(text, match.end()))

    def before(self, path: str, router: str, row: int) -> list[str]:
        """The prefixes of the routes of a router; [""] if it has none."""
        own = self._of_constructor((path, router), row)
        return list(islice(self._above((path, router), own, MAX_DEPTH), MAX_PREFIXES))

    def _of_constructor(self, router: Router, row: int) -> str:
        made = self._own.get(router, ())
        at = bisect_right(made, row, key=itemgetter(0))
        return made[max(0, at - 1)][1] if made else ""

    def _above(self, router: Router, own: str, depth: int) -> Iterator[str]:
        mounts = self._mounts.get(router) or self._mounts.get((router[0], ""), [])
        if not mounts or not depth:
            yield own
            return
        for onto, prefix, replaces in mounts:
            path = joined(self._of_constructor(onto, 0), joined(prefix, "" if replaces else own))
            yield from self._above(onto, path, depth - 1)

    def _mount(self, path: str, groups: dict[str, str | None], arguments: str) -> None:
        named = _prefix.search(arguments)
        prefix = groups.get("path") or (named["path"] if named else "")
        is_flask = named is not None and named[0].startswith("url_")
        mount = _Mount((path, groups.get("router") or ""), prefix, is_flask)
        if path.endswith(".py"):
            found = _NAME_FIRST.search(arguments)
            if found and found["module"]:
                files = self.project.tree.ending(f"{found['module'].replace('.', '/')}.py")[:1]
                target = (files[0], "") if files else None
            else:
                target = self._named(path, found["name"] if found else "")
        elif required := _REQUIRED.search(arguments):
            target = self._imported(path, Import(MODULE, "", required["file"], "", 0))
        else:
            found = _NAME_FIRST.search(arguments) if not groups.get("path") else None
            last = found or _NAME_LAST.search(arguments)
            target = self._named(path, last["name"] or "" if last else "")
        if target and target != mount.onto:
            self._mounts[target].append(mount)

    def _named(self, path: str, name: str) -> Router | None:
        """The router of a name: of this file, or imported."""
        if not name:
            return None
        first, _, rest = name.partition(".")
        rest = "" if rest in ("urls", "routes") else rest
        for _ in range(MAX_IMPORTS):
            facts = self.project.facts(path)
            every = facts.imports if facts else ()
            imported = next((one for one in every if one.name == first and not one.exported), None)
            if imported is None:
                return path, first
            if (target := self._imported(path, imported)) is None:
                return None
            path, first = target[0], rest or target[1]
            if not first:
                return target
            rest = ""
        return None

    def _imported(self, path: str, imported: Import) -> Router | None:
        files = rules_for(path).import_paths(self.project, path, imported)
        if not files:
            return None
        member = imported.member if imported.member not in ("default", "=", "*") else ""
        # `from shop import users` may mean the file users.py.
        is_file = files[0].rpartition("/")[2].partition(".")[0] == member
        return files[0], "" if is_file else member


def _arguments(text: str, start: int) -> str:
    """The arguments of a call, up to the bracket that ends them."""
    depth = 0
    for at, character in enumerate(text[start : start + MAX_ARGUMENTS]):
        if character in _OPEN:
            depth += 1
        elif character in _CLOSED:
            depth -= 1
            if depth < 0:
                return text[start : start + at]
    return text[start : start + MAX_ARGUMENTS]
