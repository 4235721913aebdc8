"""Whether the files of a git work tree differ from the commit that is checked out, as `git status`
would say. git is not run, and no object is read: its index has size, time and hash of each file.
"""

from hashlib import sha1, sha256
from pathlib import Path

from apps.core.errors import CodeinfoError
from apps.index.root_directory import MISSING, read_file
from apps.index.types import Check
from apps.ingest.discovery.git_index import Entry, Index, Kind
from apps.ingest.types import Candidate, Discovery

# Files whose content is compared, as their times differ. All times of a copied folder do.
MAX_READ = 1_000
MODULUS = 1 << 32


def is_dirty(folder: Path, index: Index, discovery: Discovery, check: Check) -> bool | None:
    """Return whether a file of a discovery of everything differs from the commit, is untracked, or
    is missing, or whether something is staged. None if it is not known."""
    if index.is_staged or _lacks_files(index, discovery):
        return True
    # A file that was written when the index was may have been written once more.
    unsure = [
        (file, entry)
        for file in discovery.files
        if (entry := index.entries.get(file.path)) and not is_as_staged(file, entry, index)
    ]
    for file, entry in unsure[:MAX_READ]:
        check()
        if not has_content(folder, file, entry.object_id):
            return True
    return None if len(unsure) > MAX_READ else False


def _lacks_files(index: Index, discovery: Discovery) -> bool:
    """Whether a tracked file is missing, or an ingested one is not tracked. Those of a submodule
    are in an index of its own."""
    if any(one.reason == MISSING and one.path in index.entries for one in discovery.skipped):
        return True
    modules = tuple(
        f"{path}/" for path, entry in index.entries.items() if entry.kind is Kind.SUBMODULE
    )
    return any(
        file.path not in index.entries and not file.path.startswith(modules)
        for file in discovery.files
    )


def is_as_staged(file: Candidate, entry: Entry, index: Index) -> bool:
    """Whether size and time of a file show that it has the content that git's index has."""
    seconds, nanoseconds = divmod(file.stat.mtime_ns, 1_000_000_000)
    stamp = file.stat.size % MODULUS, (seconds % MODULUS, nanoseconds)
    return stamp == (entry.size, entry.mtime) and entry.mtime[0] < index.written


def has_content(folder: Path, file: Candidate, object_id: bytes) -> bool:
    """Whether a file has the content of an object of git."""
    try:
        data = read_file(folder, file.path, file.stat.size)
    except CodeinfoError:
        return False
    make = sha1 if len(object_id) == sha1().digest_size else sha256
    # A repository may have other line breaks than its work tree.
    return any(
        make(b"blob %d\0%b" % (len(one), one)).digest() == object_id
        for one in (data, data.replace(b"\r\n", b"\n"))
    )
