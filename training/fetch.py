"""Fetch the packages of the manifest with the clients of their registries, and check each hash.

pip, npm and apt-get use the registries that this machine is configured for. apt-get gets a copy of
the machine's sources, with source packages added.
"""

import hashlib
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from training.corpus import Folders
from training.manifest import Kind, Package

log = logging.getLogger("training")

PARALLEL = 4
BATCH_SIZES = {"pypi": 20, "npm": 15, "deb": 60, "deb-src": 20}
# Wheels for one Python and platform, whatever this machine is: the hashes are of these files.
PIP = (  # noqa: SIM905
    "download --quiet --no-deps --require-hashes --only-binary :all: --implementation cp"
    " --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64"
    " --platform manylinux2014_x86_64 --platform any"
).split()
APT_SOURCES = Path("/etc/apt")


class FetchFailed(Exception):
    """Files of the manifest could not be downloaded or have another hash."""


def fetch(packages: Iterable[Package], folders: Folders) -> None:
    """Download the files that are missing. Raises FetchFailed if any is still missing or has
    another hash."""
    packages = list(packages)
    missing = [package for package in packages if not _is_there(package, folders)]
    kinds: tuple[Kind, ...] = ("pypi", "npm", "deb", "deb-src")
    with ThreadPoolExecutor(PARALLEL) as threads:
        for kind in kinds:
            of_kind = [package for package in missing if package.kind == kind]
            if not of_kind:
                continue
            target = folders.root / "archives" / kind
            target.mkdir(parents=True, exist_ok=True)
            environment = _apt(folders) if kind.startswith("deb") else dict(os.environ)
            log.info("fetching %d files: %s", len(of_kind), kind)
            commands = _commands(kind, of_kind, target)
            list(threads.map(lambda c, t=target, e=environment: _run(c, t, e), commands))
    lost = [package.file for package in missing if not _is_there(package, folders)]
    if lost:
        raise FetchFailed(f"{len(lost)} files are missing or not as pinned: {', '.join(lost[:20])}")


def _is_there(package: Package, folders: Folders) -> bool:
    path = folders.archive(package)
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == package.sha256


def _commands(kind: Kind, packages: Sequence[Package], target: Path) -> Iterator[list[str]]:
    names = list(dict.fromkeys((package.name, package.version) for package in packages))
    for number, batch in enumerate(_batches(names, BATCH_SIZES[kind])):
        if kind == "pypi":
            hashes = {(p.name, p.version): p.sha256 for p in packages}
            pins = target / f"pins-{number}.txt"
            pins.write_text("".join(f"{n}=={v} --hash=sha256:{hashes[n, v]}\n" for n, v in batch))
            yield [sys.executable, "-m", "pip", *PIP, "--dest", ".", "--requirement", pins.name]
        elif kind == "npm":
            yield ["npm", "pack", "--silent", *(f"{name}@{version}" for name, version in batch)]
        elif kind == "deb":
            yield ["apt-get", "download", "-qq", *(f"{name}={version}" for name, version in batch)]
        else:
            pinned = [f"{name}={version}" for name, version in batch]
            yield ["apt-get", "source", "-qq", "--only-source", "--download-only", *pinned]


def _batches(items: Sequence[tuple[str, str]], size: int) -> Iterator[Sequence[tuple[str, str]]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """What fails is told once all were tried, by what is missing then."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        log.warning("%s: %s", " ".join(command[:4]), done.stderr.strip()[-300:])


def _apt(folders: Folders) -> dict[str, str]:
    """An environment in which apt-get knows source packages too, once its lists are read."""
    root = folders.root / "apt"
    config = root / "apt.conf"
    if not config.exists():
        for folder in ("sources.list.d", "lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for path in APT_SOURCES.glob("sources.list.d/*.sources"):
            text = re.sub(r"^Types: deb$", "Types: deb deb-src", path.read_text(), flags=re.M)
            (root / "sources.list.d" / path.name).write_text(text)
        lines = APT_SOURCES / "sources.list"
        if lines.exists():
            text = re.sub(r"^(deb)( .*)$", r"\1\2\n\1-src\2", lines.read_text(), flags=re.M)
            (root / "sources.list").write_text(text)
        config.write_text(
            f'Dir::Etc::SourceList "{root}/sources.list";\n'
            f'Dir::Etc::SourceParts "{root}/sources.list.d";\n'
            f'Dir::State::Lists "{root}/lists";\nDir::Cache "{root}/cache";\n'
            'APT::Sandbox::User "root";\n'
        )
        environment = {**os.environ, "APT_CONFIG": str(config)}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    return {**os.environ, "APT_CONFIG": str(config)}
