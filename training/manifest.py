"""The pinned list of packages: role, version, file, hash and licence of each."""

import csv
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal

MANIFEST = Path(__file__).parent / "manifest.tsv"

Role = Literal["train", "develop", "guard", "start"]
Kind = Literal["pypi", "npm", "deb", "deb-src"]


@dataclass(frozen=True, order=True)
class Package:
    """One file of one package."""

    # `train`: training data; `develop`: the development set; `guard`: used by an evaluation, so
    # that what resembles it is excluded; `start`: initial word vectors.
    role: Role
    kind: Kind
    name: str
    version: str
    file: str  # name of the archive
    sha256: str  # hex
    licence: str  # as the package writes it


def read_manifest(path: Path = MANIFEST) -> list[Package]:
    with path.open(encoding="utf-8", newline="") as rows:
        return [Package(**row) for row in csv.DictReader(rows, delimiter="\t")]  # type: ignore[arg-type]


def write_manifest(packages: Iterable[Package], path: Path = MANIFEST) -> None:
    with path.open("w", encoding="utf-8", newline="") as rows:
        writer = csv.writer(rows, delimiter="\t", lineterminator="\n")
        writer.writerow([field.name for field in fields(Package)])
        writer.writerows(astuple(package) for package in sorted(set(packages)))
