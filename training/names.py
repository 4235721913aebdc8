"""Names of persons, which are left out of the vocabulary.

A word is a name if the Faker package lists it as a first or last name, or if an author or
maintainer of a package has it. It stays in the vocabulary if a package has that name, or if it is
in the symbols, doc comments or texts of many packages, like `mark`, `max` and `grant`.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from apps.embedding.words import stems
from training import archives
from training.arrays import Counts
from training.corpus import Folders
from training.manifest import Package
from training.metadata import npm_description, wheel_metadata

LISTING = "faker"
# A name in at least this many packages is a word of code.
IN_SYMBOLS, IN_QUESTIONS, IN_TEXTS = 12, 20, 150
_SYMBOL = 2  # the column of the symbol's words in the counts of a text
_QUOTED = re.compile(r"[\"']([^\"'\W\d_][^\"'\d_]{2,20})[\"']")
_WORD = re.compile(r"[^\W\d_]{3,}")
_NO_PERSON = re.compile(
    r"\b(team|authors?|foundation|contributors?|inc|ltd|llc|gmbh|corp|corporation|project|developers?"
    r"|community|software|labs?|group|company|the|and|maintainers?|development|services?|cloud|sdk"
    r"|systems?|technolog\w+|networks?|university|institute|open|source|google|microsoft|amazon)\b",
    re.IGNORECASE,
)


def personal(counts: Counts, packages: Iterable[Package], folders: Folders) -> frozenset[str]:
    """The stems to leave out."""
    packages = [package for package in packages if package.role == "train"]
    found = {stem for word in _names(packages, folders) for stem in stems(word) if len(stem) > 2}
    package_names = {stem for package in packages for stem in stems(package.name)}
    return frozenset(found - package_names - _words_of_code(counts))


def _names(packages: Iterable[Package], folders: Folders) -> Iterator[str]:
    for package in packages:
        archive = folders.archive(package)
        if package.kind == "pypi":
            yield from _authors(package, folders)
        if package.kind == "npm":
            author = npm_description(archive).get("author") or ""
            text = author.get("name", "") if isinstance(author, dict) else author
            yield from _person(text.partition("<")[0])
        if package.kind == "pypi" and package.name.lower() == LISTING:
            yield from _listed(package, folders)


def _authors(package: Package, folders: Folders) -> Iterator[str]:
    metadata = wheel_metadata(folders.archive(package))
    for field in ("Author", "Maintainer", "Author-email", "Maintainer-email"):
        for name in re.split(r"[,;]| and ", str(metadata.get(field) or "")):
            yield from _person(re.sub(r"<[^>]*>|\S+@\S+|\"", " ", name))


def _person(name: str) -> list[str]:
    """The words of a name that may be that of a person: two to four capitalised words."""
    words = name.split()
    capital = all(word[:1].isupper() for word in words)
    return (
        _WORD.findall(name)
        if 2 <= len(words) <= 4 and capital and not _NO_PERSON.search(name)
        else []
    )


def _listed(package: Package, folders: Folders) -> Iterator[str]:
    """The names in the person providers of Faker, in all languages with Latin letters."""
    for _, content in archives.files(folders.archive(package), _lists_names):
        yield from _QUOTED.findall(content.decode("utf-8"))


def _lists_names(path: str) -> bool:
    return "/providers/person/" in path and path.endswith(".py")


def _words_of_code(counts: Counts) -> frozenset[str]:
    """Words in the symbols, questions or texts of many packages."""
    in_symbol = counts.text_count[:, _SYMBOL] > 0
    of_text = np.repeat(counts.package, np.diff(counts.text_at))
    of_question = np.repeat(counts.package, np.diff(counts.question_at))
    size = len(counts.words)
    symbols = _packages(counts.text_word[in_symbol], of_text[in_symbol], size)
    texts = _packages(counts.text_word, of_text, size)
    questions = _packages(counts.question_word, of_question, size)
    many = (symbols >= IN_SYMBOLS) | (questions >= IN_QUESTIONS) | (texts >= IN_TEXTS)
    frequent = np.flatnonzero(many)
    return frozenset(counts.words[word] for word in frequent)


def _packages(words: NDArray[np.int32], package: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """The number of packages that contain each word: int64 (size,)."""
    most = int(package.max(initial=0)) + 1
    both = np.unique(words.astype(np.int64) * most + package)
    return np.bincount(both // most, minlength=size)
