"""The languages and the modules of a repository, by the sizes of its files."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from apps.code.languages import FILE_TYPES
from apps.code.paths import DATA_SUFFIXES, INDEX_STEMS, PACKAGE_MANIFESTS, kinds
from apps.code.values import words
from apps.lookup.symbols.project import LiveFile, RootProject

MAX_LANGUAGES, MAX_MODULES, MAX_ASIDE, MAX_PARTS = 6, 10, 4, 5
# A folder with this share of the code is no module of its own: those inside of it are. So often,
# and until there are so many folders.
MOST, MAX_DESCENTS, MAX_FOLDERS = 0.6, 12, 300
# Files and bytes whose lines are counted.
MAX_FILES, MAX_BYTES = 50_000, 50_000_000
# A folder in a module with this share of its code stands for it.
NEARLY_ALL = 0.8
# Less of the code than this is not worth a line.
LEAST_SHARE = 0.005
_NO_CODE = frozenset(kind.name for kind in FILE_TYPES if kind.prose) | {
    "ignore",
    "gomod",
    "ini",
    "template",
}
# What a folder is for, if it is none of the product's modules.
_PURPOSES = {"test": "tests", "example": "examples", "legacy": "old or vendored", "prose": "docs"}
_VENDORED = words(
    "deps external extern externals node_modules bower_components generated gen dist build "
    "__generated__ pods"
)
_EXAMPLE = re.compile(r"[a-z](?:Benchmarks?|Examples?|Samples?|Demo)\.\w+$")


@dataclass(frozen=True)
class LanguageSize:
    """A programming language of a repository."""

    name: str
    files: int
    lines: int | None  # None: they were not counted, as they are many
    share: float  # of the bytes of all code, from 0 to 1


@dataclass(frozen=True)
class Module:
    """A folder near the top of a repository."""

    path: str  # with a slash at the end; "" for the repository itself, without its folders
    files: int
    language: str  # of most code in it; "" if it has none
    parts: tuple[str, ...]  # its largest files, without endings, and folders, with a slash
    purpose: str = ""  # of a folder that is no module of the product: tests, docs, …


def is_code(file: LiveFile) -> bool:
    """Whether a file is neither prose nor data nor of an unknown language."""
    suffix = f".{file.path.rpartition('.')[2].lower()}"
    return bool(file.language) and file.language not in _NO_CODE and suffix not in DATA_SUFFIXES


def is_aside(path: str) -> bool:
    """Whether a file is a test, an example, old or vendored, or in a folder of docs."""
    return bool(_purpose(path) or _EXAMPLE.search(path))


def purpose_of(folder: str) -> str:
    """What a folder is for, by its name; "" for a module of the product. folder: ends with /"""
    return _purpose(f"{folder}x") if folder else ""


def _purpose(path: str) -> str:
    found = kinds(path)
    is_vendored = _VENDORED & set(path.lower().split("/")[:-1])
    first = next((text for kind, text in _PURPOSES.items() if kind in found), "")
    return first or (_PURPOSES["legacy"] if is_vendored else "")


def languages_of(
    project: RootProject, files: Sequence[LiveFile], *, counts_lines: bool = True
) -> tuple[LanguageSize, ...]:
    """The languages with most code in some files of a repository."""
    code = [file for file in files if is_code(file)]
    paths: dict[str, list[str]] = defaultdict(list)
    sizes: Counter[str] = Counter()
    for file in code:
        paths[file.language].append(file.path)
        sizes[file.language] += file.size
    size = sizes.total()
    can_count = counts_lines and len(code) <= MAX_FILES and size <= MAX_BYTES
    return tuple(
        LanguageSize(
            name,
            len(paths[name]),
            _lines(project, paths[name]) if can_count else None,
            sizes[name] / (size or 1),
        )
        for name in _largest(sizes)[:MAX_LANGUAGES]
        if sizes[name] >= LEAST_SHARE * size
    )


def _lines(project: RootProject, paths: Sequence[str]) -> int | None:
    lines = sum(len(own) for _, own in project.lines_in_time(paths))
    return None if project.deadline.is_over else lines


# --- modules --------------------------------------------------------------------------------------


class _File(NamedTuple):
    """A file of a module."""

    path: str
    language: str
    size: int  # bytes of code; 0 for prose and data


@dataclass
class _Folder:
    """A folder that may be a module."""

    path: str  # with a slash at the end; "" for the files of the repository itself
    files: list[_File] = field(default_factory=list)

    @cached_property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @cached_property
    def purpose(self) -> str:
        return purpose_of(self.path)

    @cached_property
    def inner(self) -> Sequence["_Folder"]:
        """The folders in it, and itself with its own files."""
        return _by_folder(self.path, self.files)

    @cached_property
    def is_package(self) -> bool:
        return any(file.path[len(self.path) :] in PACKAGE_MANIFESTS for file in self.files)

    @property
    def packages(self) -> int:
        return sum(one.is_package for one in self.inner if one.path != self.path)

    def is_flat(self) -> bool:
        """Whether much of its code is in files of its own."""
        own = sum(one.size for one in self.inner if one.path == self.path)
        return own >= (1 - MOST) * self.size


def modules_of(files: Iterable[LiveFile]) -> tuple[Module, ...]:
    """The folders that a reader meets first, largest first; those for tests, docs and the like
    last."""
    sized = [_File(file.path, file.language, file.size * is_code(file)) for file in files]
    folders = _by_folder("", sized)
    for _ in range(MAX_DESCENTS):
        opened = _opened(folders)
        if not opened or len(folders) > MAX_FOLDERS:
            break
        kept = [one for one in folders if one.path not in opened]
        folders = [*kept, *(inner for one in folders if one.path in opened for inner in one.inner)]
    folders = [one for one in folders if not one.path.startswith(".")]
    folders.sort(key=lambda one: (-one.size, -len(one.files), one.path))
    aside = [one for one in folders if one.purpose][:MAX_ASIDE]
    own = (_module(one) for one in folders if not one.purpose and one.size)
    shown = islice((one for one in own if one.parts), MAX_MODULES)
    return (*shown, *map(_module, aside))


def _opened(folders: Sequence[_Folder]) -> set[str]:
    """The folders whose folders are modules, rather than themselves: those with several packages,
    and the one that has most of the code and is not a package among others; none that has much
    code of its own."""
    own = [one for one in folders if one.path and not one.purpose and one.size]
    every = sum(one.size for one in folders if not one.purpose)
    return {
        one.path
        for one in own
        if not one.is_flat()
        and (
            one.packages > 1 or (one.size >= MOST * every and (len(own) == 1 or not one.is_package))
        )
    }


def _by_folder(folder: str, files: Iterable[_File]) -> list[_Folder]:
    """The folders directly in a folder, and itself with its own files."""
    below: dict[str, _Folder] = {}
    for file in files:
        name, slash, _ = file.path[len(folder) :].partition("/")
        path = f"{folder}{name}/" if slash else folder
        below.setdefault(path, _Folder(path)).files.append(file)
    return list(below.values())


def _module(folder: _Folder) -> Module:
    code = [file for file in folder.files if file.size]
    sizes: Counter[str] = Counter()
    for file in code:
        sizes[file.language] += file.size
    parts = () if folder.purpose else _parts(folder.path, code)
    language = next(iter(_largest(sizes)), "")
    return Module(folder.path, len(folder.files), language, parts, folder.purpose)


def _parts(path: str, code: Sequence[_File]) -> tuple[str, ...]:
    """The largest files and folders of a folder; if one folder has nearly all, those in it."""
    inner = [
        (file.path[len(path) :].split("/"), file.size)
        for file in code
        if not is_aside(file.path) and ".config." not in file.path
    ]
    inner = [(names, size) for names, size in inner if not names[0].startswith(".")]
    while inner:
        parts: Counter[str] = Counter()
        for (name, *rest), size in inner:
            parts[f"{name}/" if rest else name.rpartition(".")[0] or name] += size
        first = _largest(parts)[0]
        if not first.endswith("/") or parts[first] < NEARLY_ALL * sum(parts.values()):
            plain = {name: size for name, size in parts.items() if name not in INDEX_STEMS}
            return _largest(plain or parts)[:MAX_PARTS]
        inner = [(rest, size) for (name, *rest), size in inner if rest and name == first[:-1]]
    return ()


def _largest(sizes: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(sizes, key=lambda name: (-sizes[name], name)))
