"""Extract the pairs of all packages in several processes, to one file for each package."""

import logging
import pickle
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

from training.extract import Pair, pairs_of
from training.guard import Guard
from training.manifest import Package
from training.metadata import source_rules

log = logging.getLogger("training")

MOST_PAIRS = 4_000  # of one package


@dataclass(frozen=True)
class Folders:
    """The folders of a training run."""

    root: Path

    @property
    def pairs(self) -> Path:
        return self.root / "pairs"

    @property
    def guard(self) -> Path:
        return self.root / "guard.npz"

    def archive(self, package: Package) -> Path:
        return self.root / "archives" / package.kind / package.file

    def pairs_of(self, package: Package) -> Path:
        return self.pairs / f"{package.kind}-{package.file}.pickle"


def extract(packages: Iterable[Package], folders: Folders, processes: int = 2) -> None:
    """Write the guard, then the pairs of each package that has none yet."""
    packages = list(packages)
    folders.pairs.mkdir(parents=True, exist_ok=True)
    if not folders.guard.exists():
        Guard.of(folders.archive(p) for p in packages if p.role == "guard").save(folders.guard)
    rules = {p.name: folders.archive(p) for p in packages if ".debian.tar." in p.file}
    todo = [
        (package, folders, rules.get(package.name) if package.kind == "deb-src" else None)
        for package in packages
        if package.role in ("train", "develop")
        and ".debian.tar." not in package.file
        and not folders.pairs_of(package).exists()
    ]
    with Pool(processes) as pool:
        for done, count in enumerate(pool.imap_unordered(_extract, todo, chunksize=4), 1):
            if done % 100 == 0:
                log.info("%d of %d packages, last with %d pairs", done, len(todo), count)


def _extract(task: tuple[Package, Folders, Path | None]) -> int:
    package, folders, packaging = task
    guard = _guard(folders)
    rules = source_rules(packaging) if packaging else ""
    try:
        found = pairs_of(package, folders.archive(package), rules)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        log.warning("%s left out: %s", package.file, error)
        found = []
    allowed = [pair for pair in found if not guard.forbids(pair)][:MOST_PAIRS]
    with folders.pairs_of(package).open("wb") as file:
        pickle.dump(allowed, file)
    return len(allowed)


_loaded: dict[Path, Guard] = defaultdict()


def _guard(folders: Folders) -> Guard:
    if folders.guard not in _loaded:
        _loaded[folders.guard] = Guard.load(folders.guard)
    return _loaded[folders.guard]


def pairs(packages: Iterable[Package], folders: Folders) -> Iterator[tuple[Package, list[Pair]]]:
    """The extracted pairs of each package, in the order of the manifest."""
    for package in packages:
        path = folders.pairs_of(package)
        if path.exists():
            yield package, pickle.loads(path.read_bytes())
