"""Tells whether a tracked folder named `vendor`, `dist`, `build`, `coverage` or `logs` holds what
somebody else wrote, or what a tool made. Its name alone does not say so.

Each rule is a file that a tool writes into such a folder, or a manifest beside it that names the
folder as its output.
"""

import json
from collections.abc import Collection, Set
from typing import Any

from apps.index.root_directory import RootDirectory

VENDORED = "Vendored"
GENERATED = "Generated"
MANIFEST = "package.json"
MAX_MANIFEST_BYTES = 1_000_000
# Fields of package.json that say which files a package has or is loaded from.
FIELDS = ("main", "module", "browser", "types", "typings", "bin", "files", "exports", "unpkg")
MAX_MANIFEST_DEPTH = 10

# Folder → files inside that a tool writes.
INSIDE: dict[str, frozenset[str]] = {
    "vendor": frozenset({"modules.txt", "autoload.php", "vendor.json"}),  # Go, Composer, govendor
    "coverage": frozenset({"lcov.info", "lcov-report", "coverage-final.json", "clover.xml"}),
    "dist": frozenset({"asset-manifest.json", ".vite"}),
    "build": frozenset(
        {"asset-manifest.json", "CMakeCache.txt", "CMakeFiles", "build.ninja", "meson-info"}
    ),
}
# Manifests of tools that always write into `build`.
BESIDE_BUILD = ("build.gradle", "build.gradle.kts", "pubspec.yaml")
# Of a crate that `cargo vendor` wrote.
CRATE = ".cargo-checksum.json"


def reason_against(directory: RootDirectory, folder: str, names: Set[str]) -> str:
    """Return why a folder is left out; "" if nothing says so.

    folder: its path, which ends with a slash
    names: of its entries
    """
    above, _, name = folder.rstrip("/").rpartition("/")
    above = f"{above}/" if above else ""
    kind = VENDORED if name == "vendor" else GENERATED
    proof = next(iter(sorted(INSIDE.get(name, frozenset()) & names)), "")
    if not proof and name in ("dist", "build"):
        proof = next((entry for entry in sorted(names) if _is_minified(entry)), "")
        if not proof and _is_output(directory, f"{above}{MANIFEST}", name):
            proof = MANIFEST
    if not proof and name == "build":
        proof = next((one for one in BESIDE_BUILD if _exists(directory, f"{above}{one}")), "")
    return f"{kind}: {proof}" if proof else ""


def reason_against_crate(folder: str, names: Collection[str]) -> str:
    """Return why a folder directly below a `vendor` folder is left out, "" if it is not."""
    parents = folder.rstrip("/").split("/")[:-1]
    return f"{VENDORED}: {CRATE}" if parents[-1:] == ["vendor"] and CRATE in names else ""


def _is_minified(name: str) -> bool:
    return name.endswith((".min.js", ".min.css", ".js.map", ".css.map"))


def _exists(directory: RootDirectory, path: str) -> bool:
    try:
        directory.stat(path)
    except OSError:
        return False
    return True


def _is_output(directory: RootDirectory, manifest: str, name: str) -> bool:
    """Whether a package.json names files in the folder `name` beside it."""
    try:
        package = json.loads(directory.read(manifest, MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(package, dict):
        return False
    return any(_leads_to(package.get(field), name) for field in FIELDS)


def _leads_to(value: Any, name: str, depth: int = 0) -> bool:
    match value:
        case str():
            return value.removeprefix("./").removeprefix("/").split("/", 1)[0] == name
        case dict() | list() if depth < MAX_MANIFEST_DEPTH:
            values = value.values() if isinstance(value, dict) else value
            return any(_leads_to(inner, name, depth + 1) for inner in values)
        case _:
            return False
