"""The folders of a repository, one at a time, for the code browser."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.index.models import Root
from apps.index.query_cache import per_generation
from apps.lookup.symbols.project import LiveFile
from apps.lookup.texts.table import file_table


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a folder with what is below it."""

    path: str  # in the repository; without a slash at the end
    name: str
    is_folder: bool
    size: int  # bytes
    files: int  # below a folder; 1 for a file
    language: str  # of a file, or of most files below a folder; "" if it is unknown


def folders_of(root: Root, path: str) -> list[tuple[str, list[Entry]]]:
    """The folders on the way to a folder, itself included, each with its entries; the repository
    itself is "". Entries: folders first, then files, each by name in any case.

    Files that nested repositories contain as well are listed: they are in this folder.
    """
    files: Sequence[LiveFile] = file_table(root).files
    chain: list[tuple[str, list[Entry]]] = []
    folder = ""
    for name in ["", *filter(None, path.split("/"))]:
        folder = f"{folder}/{name}" if folder else name
        start = f"{folder}/" if folder else ""
        files = [file for file in files if file.path.startswith(start)] if start else files
        if not files:
            break
        chain.append((folder, _entries(files, start) if start else _top(root)))
    return chain


def entries_of(root: Root, folder: str) -> list[Entry]:
    """The entries of one folder; empty if no ingested file is below it."""
    if not folder:
        return _top(root)
    start = f"{folder}/"
    return _entries([f for f in file_table(root).files if f.path.startswith(start)], start)


def matching_files(root: Root, text: str, limit: int) -> tuple[list[Entry], bool]:
    """At most `limit` files whose path contains a text in any case, those with it in their name
    first; and whether there are more."""
    wanted = text.strip().lower()
    files = [file for file in file_table(root).files if wanted in file.path.lower()]
    files.sort(key=lambda file: (wanted not in _name(file.path).lower(), len(file.path)))
    return [_file(file, file.path) for file in files[:limit]], len(files) > limit


def languages_of(root: Root, count: int) -> list[str]:
    """The languages of most files of a repository."""
    return most_languages(file_table(root).files, count)


def most_languages(files: Iterable[LiveFile], count: int) -> list[str]:
    """The languages of most of some files."""
    counts = Counter(file.language for file in files if file.language)
    return [name for name, _ in counts.most_common(count)]


@per_generation
def _top(root: Root) -> list[Entry]:
    """The entries of the repository itself: each page of the code browser has them."""
    return _entries(file_table(root).files, "")


def _entries(files: Sequence[LiveFile], start: str) -> list[Entry]:
    below: dict[str, list[LiveFile]] = {}
    entries: list[Entry] = []
    for file in files:
        name, slash, _ = file.path[len(start) :].partition("/")
        if slash:
            below.setdefault(name, []).append(file)
        else:
            entries.append(_file(file, name))
    entries += [_folder(start, name, inside) for name, inside in below.items()]
    return sorted(entries, key=lambda entry: (not entry.is_folder, entry.name.lower(), entry.name))


def _folder(start: str, name: str, files: Sequence[LiveFile]) -> Entry:
    size = sum(file.size for file in files)
    language = "".join(most_languages(files, 1))
    return Entry(start + name, name, True, size, len(files), language)


def _file(file: LiveFile, name: str) -> Entry:
    return Entry(file.path, name, False, file.size, 1, file.language)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
