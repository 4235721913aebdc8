"""Decides which files are eligible, by their names and their first bytes.

The reasons are a few short texts, so that the page can filter by them. Excluded names take
precedence over everything, secrets over known types, names over contents. What a
`.codeinfoignore` includes is *chosen*: it is skipped only if it is codeinfo's own data, a secret,
empty, binary or too large.
"""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from apps.code.encodings import utf16_without_mark
from apps.code.languages import extension_of, is_bare, is_known_extension, known_type
from apps.ingest.discovery import own_data, secrets
from apps.ingest.discovery.own_data import OwnData
from apps.ingest.discovery.tables import PatternTable, words

SECRET = "Secret"
GENERATED = "Generated"
MINIFIED = "Minified"
DATA = "Data"
BINARY = "Binary"
EMPTY = "Empty"
LFS_POINTER = "Git LFS pointer"
EXCLUDED_BY_NAME = "Excluded"
UNKNOWN_TYPE = "Not a known type"

# How a pointer begins (https://github.com/git-lfs/git-lfs).
LFS_START = b"version https://git-lfs.github.com/spec/"

# How many bytes are read to detect secrets, the kind of text, and binary files (NUL).
SCAN_BYTES = secrets.SCAN_BYTES
HEAD_BYTES = 32_768
SNIFF_BYTES = 2_048
# A file is minified if most of its head is in lines longer than this.
LONG_LINE = 1_000

# A word list has one entry a line: a word, with numbers after it or not, or numbers. Scripts
# without spaces between words (Thai, Khmer, Chinese, Japanese) are exempt: a sentence looks like a
# word.
LONGEST_WORD = 40
LIST_SHARE = 0.95
BETWEEN_CELLS = re.compile(r"[\s,;|]+")
NUMBER = re.compile(r"[-+\d.:/%eE]+")
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff]")

BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Folders and files that are excluded at any depth, though git tracks them.
REPOSITORIES = frozenset({".git", ".hg", ".svn"})  # nothing includes these
EXCLUDED = REPOSITORIES | words(
    """
    node_modules bower_components .venv venv __pycache__ .tox .nox .eggs .mypy_cache .pytest_cache
    .ruff_cache .next .nuxt .svelte-kit .terraform .gradle .idea .parcel-cache .turbo .yarn
    """
)
# Excluded by their names unless git tracks them: a tracked `apps/logs/` or `vendor/` may be source
# code, so among tracked files `evidence` decides.
BY_NAME = frozenset({"vendor", "dist", "build", "coverage", "logs"})

GENERATED_NAMES = PatternTable(
    """
    package-lock.json npm-shrinkwrap.json *.lock pnpm-lock.yaml *.lockb go.sum go.work.sum
    *.lock.json packages.lock.json gradle.lockfile package.resolved .terraform.lock.hcl *.min.*
    *.map *.bundle.js *.chunk.js *_pb2.py *_pb2_grpc.py *_pb2.pyi *.pb.go *.pb.cc *.pb.h
    *.g.dart *.freezed.dart *.designer.cs *.g.cs
    """
)

# One lookup for the names that are in neither table, which are most.
SUSPECTS = PatternTable(f"{secrets.SUSPECTS.table} {GENERATED_NAMES.table}")

DATA_EXTENSIONS = words(
    """
    csv tsv psv jsonl ndjson geojson topojson svg parquet sqlite sqlite3 db log po pot ics vcf
    """
)
# A larger file of these types contains records, not settings.
BULKY = 100_000
BULKY_EXTENSIONS = frozenset(
    {"json", "json5", "jsonc", "ipynb", "xml", "yaml", "yml", "sql", "plist", "edn"}
)


@dataclass(frozen=True)
class Rules:
    """The built-in tables with the changes of INGEST_INCLUDE, INGEST_EXCLUDE and the size limit."""

    max_bytes: int
    include: frozenset[str] = frozenset()  # names and extensions; empty for all known types
    exclude: frozenset[str] = frozenset()  # names
    suffixes: tuple[str, ...] = ()  # of excluded paths
    own: OwnData = OwnData()  # codeinfo's data below the root

    @classmethod
    def of(
        cls,
        *,
        include: Iterable[str],
        exclude: Iterable[str],
        max_bytes: int,
        own: OwnData,
    ) -> Self:
        names = [word.strip("/") for word in exclude]
        return cls(
            max_bytes=max_bytes,
            include=frozenset(
                word.lower().removeprefix("*.").removeprefix(".") for word in include
            ),
            exclude=frozenset(name for name in names if "*" not in name),
            suffixes=tuple(name.lstrip("*") for name in names if name.startswith("*")),
            own=own,
        )

    def refuse_path(self, path: str, name: str, *, tracked: bool, chosen: bool) -> str:
        """Return why a file or folder is left out by its name; "" if it is not. Its folder must not
        be left out.

        path: that of a folder ends with a slash
        tracked: whether git tracks it, or files below it
        chosen: whether a `.codeinfoignore` includes it
        """
        bare = path.removesuffix("/")
        if self.own.has(bare):
            return own_data.REASON
        excluded = name in REPOSITORIES or name in self.exclude
        excluded = excluded or (bool(self.suffixes) and bare.endswith(self.suffixes))
        if not chosen:
            excluded = excluded or name in EXCLUDED or (name in BY_NAME and not tracked)
        return f"{EXCLUDED_BY_NAME}: {name}{path[len(bare) :]}" if excluded else ""

    def refuse_name(self, path: str, *, chosen: bool = False) -> str | None:
        """Return why a file is skipped by its name; None if it may be eligible."""
        folder, _, name = path.lower().rpartition("/")
        if SUSPECTS.match(name) or "." in folder:
            if secrets.is_secret_name(folder, name):
                return SECRET
            if GENERATED_NAMES.match(name) and not chosen:
                return GENERATED
        return None if chosen else self._refuse_type(name)

    def _refuse_type(self, name: str) -> str | None:
        extension = extension_of(name)
        if self.include:
            included = {name, name.removeprefix("."), extension} & self.include
            return None if included else UNKNOWN_TYPE
        if extension in DATA_EXTENSIONS:
            return DATA
        if is_known_extension(extension):  # most are
            return None
        # A file without an extension may be a script, which its first line tells.
        return None if known_type(name) or is_bare(name) else UNKNOWN_TYPE

    def refuse_size(self, path: str, size: int, *, chosen: bool = False) -> str | None:
        """Return why a file is skipped by its size in bytes, or None."""
        if size == 0:
            return EMPTY
        if size > self.max_bytes:
            return f"Too large: over {format_size(self.max_bytes)}"
        if size > BULKY and not (self.include or chosen) and extension_of(path) in BULKY_EXTENSIONS:
            return DATA
        return None

    def refuse_content(self, path: str, head: bytes) -> str | None:
        """Return why a file is never ingested, by its content, or None.

        head: its first SCAN_BYTES
        """
        if not head[:HEAD_BYTES].strip(b" \t\r\n\f\v"):
            return EMPTY
        if not head.startswith(BOMS) and b"\0" in head[:SNIFF_BYTES]:
            encoding = utf16_without_mark(head)
            if not encoding:
                return BINARY
            head = head.decode(encoding, "replace").encode()
        if head.startswith(LFS_START):
            return LFS_POINTER
        return SECRET if secrets.holds_secret(path, head) else None

    def refuse_kind(self, path: str, head: bytes) -> str | None:
        """Return why a file is skipped by the kind of its content, or None. Arguments as for
        `refuse_content`."""
        head = head[:HEAD_BYTES]
        if not self.include and is_bare(path) and not head.startswith(b"#!"):
            return UNKNOWN_TYPE
        kind = known_type(path)
        if kind is not None and kind.prose:
            return DATA if not self.include and _is_list(head) else None
        return _refuse_long_lines(path, head)


def _is_list(head: bytes) -> bool:
    """Whether a large text is bulk data (a word list, a table of numbers) and not prose."""
    if len(head) < HEAD_BYTES:
        return False
    # The last line and the last character may be incomplete.
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:-1] if line.strip()]
    return len(lines) > 1 and sum(map(_is_entry, lines)) >= LIST_SHARE * len(lines)


def _is_entry(line: str) -> bool:
    word, *numbers = BETWEEN_CELLS.split(line.strip(" \t\r,;|"))
    if len(word) > LONGEST_WORD or UNSPACED.search(word):
        return False
    return all(NUMBER.fullmatch(number) for number in numbers)


def _refuse_long_lines(path: str, head: bytes) -> str | None:
    long_lines = sum(len(line) for line in head.split(b"\n") if len(line) > LONG_LINE)
    if long_lines * 2 <= len(head):
        return None
    return DATA if extension_of(path) in BULKY_EXTENSIONS else MINIFIED


def format_size(size: int) -> str:
    """1_000_000 → "1 MB", 1500 → "1.5 kB"."""
    amount, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"
