"""Where JavaScript finds a module that is not named by a relative path: `paths` of a tsconfig, the
packages of the repository, and what frameworks define."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from apps.code.callgraph.project import Project, folder_of, join

SUFFIXES = (
    *("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"),
    *("/index.ts", "/index.tsx", "/index.d.ts", "/index.js", "/index.jsx", "/index.mjs"),
)
# Imports name the compiled file.
COMPILED = re.compile(r"\.([mc]?)js(x?)\Z")
# In JSON: strings are kept, comments and trailing commas are left out. Each branch matches to the
# end of the text, if need be, so that the time is linear.
COMMENTS = re.compile(
    r'("(?:[^"\\\n]|\\[^\n]?)*(?:"|(?=\n)|\Z))|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)'
)
COMMAS = re.compile(r'("(?:[^"\\\n]|\\[^\n]?)*(?:"|(?=\n)|\Z))|,(?=\s*[}\]])')
DECLARED = ".d.ts"
CONFIGS = ("tsconfig.json", "tsconfig.base.json", "jsconfig.json")
# Where there is one of these, a module need not import what it uses.
AUTO_IMPORTS = (
    *("nuxt.config.ts", "nuxt.config.js", "nuxt.config.mjs"),
    *("auto-imports.d.ts", "components.d.ts"),
)
WORDS = re.compile(r"[A-Z][^A-Z]*")
# Files of settings that are read.
MAX_SETTINGS = 300
MAX_SETTINGS_CHARS = 100_000
# Files that a tsconfig extends or refers to.
MAX_CONFIGS = 8
# Fields of a package.json with the file that its name means.
ENTRIES = ("source", "types", "module", "main", "svelte", "browser")
# Folders of compiled files; their sources are in `src`.
COMPILED_FOLDERS = frozenset({"dist", "lib", "build", "out", "es", "esm", "cjs", "types"})
MAX_DEPTH = 6
# Prefixes that frameworks define, and the folders that they mean.
PREFIXES = {"@/": ("src", ""), "~/": ("src", "app", ""), "~~/": ("",), "$lib/": ("src/lib",)}


def file_of(project: Project, stem: str) -> str | None:
    """The file that an import of a path means."""
    file = project.tree.first(*(f"{stem}{suffix}" for suffix in SUFFIXES))
    if file is None and COMPILED.search(stem):
        source = COMPILED.sub(r".\1ts\2", stem)
        file = project.tree.first(source, f"{source}x", COMPILED.sub(r".\1js\2x", stem))
    if file is not None and file.endswith(DECLARED):  # declarations of a file beside it
        stem = file.removesuffix(DECLARED)
        file = project.tree.first(*(f"{stem}.{ending}" for ending in ("js", "mjs", "jsx"))) or file
    return file


def stems(project: Project, path: str, module: str) -> Iterator[str]:
    """The paths, mostly without an ending, that a module may mean in a file; the best first."""
    folders = _folders(path)
    for folder in folders:
        for name in CONFIGS:
            yield from _by_config(project, join(folder, name), module)
    if module.startswith("#"):
        yield from _by_imports(project, folders, module)
        return
    name, _, rest = _package(module)
    for manifest in project.tree.by_name.get("package.json", ())[:MAX_SETTINGS]:
        settings = _settings(project, manifest)
        if settings.get("name") == name:
            yield from _in_package(settings, folder_of(manifest), rest)
    for prefix, inside in PREFIXES.items():
        if f"{module}/".startswith(prefix):
            for folder in folders:
                yield from (join(join(folder, one), module[len(prefix) :]) for one in inside)


def imports_itself(project: Project) -> bool:
    """Whether modules have names of other files without an import, as those of Nuxt."""
    return any(name in project.tree.by_name for name in AUTO_IMPORTS)


def component_file(project: Project, name: str) -> str | None:
    """The only component of Vue that a name without an import may mean: `Card` is `Card.vue`, and
    `BaseCard` may be `base/Card.vue`."""
    for word in WORDS.finditer(name):
        prefix, last = name[: word.start()], name[word.start() :]
        files = project.tree.by_name.get(f"{last}.vue", ())
        found = [file for file in files if _joined(folder_of(file)).endswith(prefix)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def component_names(path: str) -> Iterator[str]:
    """The names by which templates use a component of Vue without an import."""
    folder, _, name = path.removesuffix(".vue").rpartition("/")
    if path.endswith(".vue"):
        last = folder.rpartition("/")[2]
        for component in (name, _joined(last) + name):
            yield component
            yield re.sub(r"\B(?=[A-Z])", "-", component).lower()


def _joined(folder: str) -> str:
    """The words of a path, each with a capital."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"[^\W_]+", folder))


def package_names(project: Project, path: str) -> Iterator[str]:
    """Names by which modules may import a file, beside its own: that of its package, if the file is
    its entry, and keys of `exports` and `paths` that mean the file."""
    folder = folder_of(path)
    while folder and join(folder, "package.json") not in project.tree.paths:
        folder = folder_of(folder)
    settings = _settings(project, join(folder, "package.json"))
    exports, name = settings.get("exports"), settings.get("name")
    if isinstance(name, str) and _means(project, path, _in_package(settings, folder, "")):
        yield name
    for key in exports if isinstance(exports, dict) else ():
        if _means(project, path, _in_package(settings, folder, key.removeprefix("./"))):
            yield key
    for folder in _folders(path):
        for config in CONFIGS:
            for base, paths in _paths(project, join(folder, config)):
                for key, places in paths.items():
                    if _means(project, path, (join(base, place) for place in _strings(places))):
                        yield key


def _means(project: Project, path: str, candidates: Iterable[str]) -> bool:
    return any(file_of(project, candidate) == path for candidate in candidates)


def _folders(path: str) -> list[str]:
    """The folders that a file is in, the innermost first."""
    folders = [folder_of(path)]
    while folders[-1]:
        folders.append(folder_of(folders[-1]))
    return folders


def _package(module: str) -> tuple[str, str, str]:
    """Name of a package, "/", and the path in it."""
    if module.startswith("@"):
        scope, _, rest = module.partition("/")
        name, slash, inner = rest.partition("/")
        return f"{scope}/{name}", slash, inner
    return module.partition("/")


def _in_package(settings: Mapping[str, Any], folder: str, rest: str) -> Iterator[str]:
    """The paths that a package offers by its name and `rest`."""
    exports = settings.get("exports")
    if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
        targets = list(_mapped(exports, f"./{rest}" if rest else "."))
    else:
        targets = [] if rest else list(_strings(exports))
    if not rest:
        targets += [entry for key in ENTRIES if isinstance(entry := settings.get(key), str)]
    for target in targets:
        yield from _sources(folder, target)
    for base in (join(folder, "src"), folder, join(folder, "lib")):
        yield join(base, rest or "index")


def _by_imports(project: Project, folders: list[str], module: str) -> Iterator[str]:
    """Private names (`#name`) of the package that a file is part of."""
    for folder in folders:
        imports = _settings(project, join(folder, "package.json")).get("imports")
        for target in _mapped(imports, module) if isinstance(imports, dict) else ():
            yield from _sources(folder, target)


def _mapped(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """The targets of a name in `exports`, `imports` or `paths`; keys may have a star."""
    for key, value in table.items():
        head, star, tail = key.partition("*")
        is_long = len(name) >= len(head) + len(tail)
        if name == key or (star and is_long and name.startswith(head) and name.endswith(tail)):
            inner = name[len(head) : len(name) - len(tail)] if star else ""
            yield from (target.replace("*", inner) for target in _strings(value))


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """The strings in nested conditions and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)) and depth < MAX_DEPTH:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, depth + 1)


def _sources(folder: str, target: str) -> Iterator[str]:
    """A file of a package, then the source of a compiled one."""
    path = join("", target)
    yield join(folder, path)
    head, slash, rest = path.partition("/")
    if slash and head in COMPILED_FOLDERS:
        stem = re.sub(r"(\.d)?\.[mc]?[jt]sx?\Z", "", rest)
        yield join(folder, f"src/{stem}")
        yield join(folder, f"src/{stem.partition('/')[2] or stem}")


def _by_config(project: Project, path: str, module: str) -> Iterator[str]:
    for base, paths in _paths(project, path):
        yield from (join(base, place) for place in _mapped(paths, module))
    for folder, options in _configs(project, path):
        if isinstance(url := options.get("baseUrl"), str):
            yield join(join(folder, url), module)


def _paths(project: Project, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """`paths` of a tsconfig and of those it names, with the folder that they start from."""
    for folder, options in _configs(project, path):
        base, paths = options.get("baseUrl"), options.get("paths")
        if isinstance(paths, dict):
            yield join(folder, base) if isinstance(base, str) else folder, paths


def _configs(project: Project, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Folder and options of a tsconfig, and of those that it extends or refers to."""
    waiting, seen = [path], set[str]()
    while waiting and len(seen) < MAX_CONFIGS:
        path = waiting.pop(0)
        settings = {} if path in seen else _settings(project, path)
        seen.add(path)
        options, folder = settings.get("compilerOptions"), folder_of(path)
        if isinstance(options, dict):
            yield folder, options
        references = settings.get("references")
        named = [*_strings(settings.get("extends")), *_strings(references)]
        for name in named if settings else ():
            place = join(folder, name)
            waiting += [place] if place.endswith(".json") else [f"{place}.json"]
            waiting += [f"{place}/tsconfig.json"] if not place.endswith(".json") else []


def _settings(project: Project, path: str) -> dict[str, Any]:
    """The JSON of a file of settings, with comments; {} if it is not there or is not valid. Must
    not be changed."""
    if path not in project.tree.paths:
        return {}
    return _parsed((project.text(path) or "")[:MAX_SETTINGS_CHARS])


@lru_cache(maxsize=2 * MAX_SETTINGS)
def _parsed(source: str) -> dict[str, Any]:
    for clean in (str, _without_comments):
        try:
            value = json.loads(clean(source))
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _without_comments(source: str) -> str:
    for pattern in (COMMENTS, COMMAS):
        source = pattern.sub(lambda match: match[1] or "", source)
    return source
