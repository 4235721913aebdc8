"""Words that only name persons, which leave the vocabulary.

A word is taken for a name when the Faker package lists it as a first or last name, or an author or
maintainer of a package bears it. It stays all the same when the symbols of many packages use it:
`mark`, `max` and `grant` are words of code, whoever else is called so.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from apps.ingest.embedding.words import stems
from training import archives
from training.arrays import Counts
from training.corpus import Folders
from training.manifest import Package
from training.pin import npm_description, wheel_metadata

LISTING = "faker"
FEWEST_PACKAGES = 15
_SYMBOL = 2  # the column of the symbol's words in the counts of a text
_QUOTED = re.compile(r"[\"']([^\"'\W\d_][^\"'\d_]{2,20})[\"']")
_WORD = re.compile(r"[^\W\d_]{3,}")


def personal(counts: Counts, packages: Iterable[Package], folders: Folders) -> frozenset[str]:
    """The stems to leave out."""
    packages = [package for package in packages if package.role == "train"]
    found = {stem for word in _names(packages, folders) for stem in stems(word) if len(stem) > 2}
    return frozenset(found - _words_of_symbols(counts))


def _names(packages: Iterable[Package], folders: Folders) -> Iterator[str]:
    for package in packages:
        archive = folders.archive(package)
        if package.kind == "pypi":
            yield from _authors(package, folders)
        if package.kind == "npm":
            author = npm_description(archive).get("author") or ""
            text = author.get("name", "") if isinstance(author, dict) else author
            yield from _WORD.findall(text.partition("<")[0])
        if package.kind == "pypi" and package.name.lower() == LISTING:
            yield from _listed(package, folders)


def _authors(package: Package, folders: Folders) -> Iterator[str]:
    metadata = wheel_metadata(folders.archive(package))
    for field in ("Author", "Maintainer", "Author-email", "Maintainer-email"):
        yield from _WORD.findall(re.sub(r"<[^>]*>|\S+@\S+", " ", str(metadata.get(field) or "")))


def _listed(package: Package, folders: Folders) -> Iterator[str]:
    """The names that Faker invents persons from, in all its languages with Latin letters."""
    for path, content in archives.files(folders.archive(package)):
        if "/providers/person/" in path and path.endswith(".py"):
            yield from _QUOTED.findall(content.decode("utf-8"))


def _words_of_symbols(counts: Counts) -> frozenset[str]:
    """Words that symbols of at least FEWEST_PACKAGES packages are made of."""
    package = np.repeat(counts.package, np.diff(counts.text_at))
    in_symbol = counts.text_count[:, _SYMBOL] > 0
    both = np.unique(np.stack([counts.text_word[in_symbol], package[in_symbol]]), axis=1)
    packages = np.bincount(both[0], minlength=len(counts.words))
    return frozenset(counts.words[word] for word in np.flatnonzero(packages >= FEWEST_PACKAGES))
