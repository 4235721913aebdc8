"""Decides which files are eligible, by their names and their first bytes.

The reasons are a few short texts, so that the page can filter by them. Excluded names take
precedence over everything, secrets over types, names over contents. Any text is eligible; some get
no vectors (`code.bulk`). What a `.codeinfoignore` includes is *chosen*: it is skipped only if it is
codeinfo's own data, a secret, empty, binary or too large.
"""

import codecs
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from apps.code.bulk import is_in_long_lines
from apps.code.encodings import utf16_without_mark
from apps.code.languages import extension_of, known_type
from apps.code.values import words
from apps.core.config import config
from apps.ingest.discovery import own_data, secrets
from apps.ingest.discovery.own_data import OwnData
from apps.ingest.discovery.tables import PatternTable

SECRET = "Secret"
GENERATED = "Generated"
MINIFIED = "Minified"
LOG = "Log"
BINARY = "Binary"
EMPTY = "Empty"
LFS_POINTER = "Git LFS pointer"
EXCLUDED_BY_NAME = "Excluded"
NOT_INCLUDED = "Not in INGEST_INCLUDE"

# How a pointer begins (https://github.com/git-lfs/git-lfs).
LFS_START = b"version https://git-lfs.github.com/spec/"

# How many bytes are read to detect secrets, the kind of text, and binary files (NUL).
SCAN_BYTES = secrets.SCAN_BYTES
HEAD_BYTES = 32_768
SNIFF_BYTES = 2_048
# A file is minified if most of its head is in long lines, and so many of a hundred bytes are
# parentheses and semicolons: SVG and base64 have next to none. Smaller files cost nothing.
MINIFIED_SHARE = 0.03
MINIFIED_MIN = 10_000
# Types whose long lines are data.
NO_CODE = frozenset({"json", "yaml", "xml", "sql"})

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
    *.g.dart *.freezed.dart *.designer.cs *.g.cs *~ .#* #*# *.swp *.swo *.tmp *.pid
    """
)

# One lookup for the names that are in neither table, which are most.
SUSPECTS = PatternTable(f"{secrets.SUSPECTS.table} {GENERATED_NAMES.table}")

# Programs write to them all the time, and each change would be ingested.
LOG_EXTENSIONS = frozenset({"log"})
# Files that need not be read, as nothing else has these names.
BINARY_EXTENSIONS = words(
    """
    png jpg jpeg jpe gif webp ico icns bmp tif tiff psd heic heif avif jxl raw cur xcf ai sketch fig
    mp3 mp4 m4a m4v wav ogg oga ogv flac aac opus mov avi mkv webm wmv mid
    woff woff2 ttf otf eot ttc pfb
    zip gz tgz bz2 tbz xz txz zst lz4 7z rar tar jar war ear aar apk ipa dmg iso deb rpm whl egg
    nupkg cab msi
    exe dll so dylib a o obj lib bin pyc pyo pyd class wasm elc beam node pdb dwo gcda gcno
    pdf doc docx xls xlsx ppt pptx odt ods odp epub mobi
    parquet sqlite sqlite3 db mdb feather avro orc arrow npy npz h5 hdf5 pkl pickle pt pth onnx
    safetensors gguf tflite pb blend fbx glb
    """
)
# Control characters that texts do not have.
CONTROLS = bytes((*range(0x09), *range(0x0E, 0x1A), *range(0x1C, 0x20)))


@dataclass(frozen=True)
class Rules:
    """The built-in tables with the changes of INGEST_INCLUDE, INGEST_EXCLUDE and the size limit."""

    max_bytes: int
    include: frozenset[str] = frozenset()  # names and extensions; empty for all known types
    exclude: frozenset[str] = frozenset()  # names
    suffixes: tuple[str, ...] = ()  # of excluded paths
    own: OwnData = OwnData()  # codeinfo's data below the root

    @classmethod
    def of(cls, root: Path) -> Self:
        """Return the rules for the files of a root, without those of its own files."""
        included = (word.lower() for word in config().ingest_include)
        names = [word.strip("/") for word in config().ingest_exclude]
        return cls(
            max_bytes=config().ingest_max_file_bytes,
            include=frozenset(word.removeprefix("*.").removeprefix(".") for word in included),
            exclude=frozenset(name for name in names if "*" not in name),
            suffixes=tuple(name.lstrip("*") for name in names if name.startswith("*")),
            own=OwnData.directory(root),
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names that `refuse_path` may refuse."""
        return EXCLUDED | BY_NAME | self.exclude

    def refuse_path(self, path: str, name: str, *, tracked: bool, chosen: bool) -> str:
        """Return why a file or folder is left out by its name; "" if it is not. Its folder must not
        be left out.

        path: that of a folder ends with a slash
        tracked: whether git tracks it, or files below it
        chosen: whether a `.codeinfoignore` includes it
        """
        if name not in self._names and not (self.suffixes or self.own):
            return ""  # most
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
            return None if included else NOT_INCLUDED
        if extension in LOG_EXTENSIONS:
            return LOG
        return BINARY if extension in BINARY_EXTENSIONS else None

    def refuse_size(self, size: int) -> str | None:
        """Return why a file is skipped by its size in bytes, or None."""
        if size == 0:
            return EMPTY
        return f"Too large: over {format_size(self.max_bytes)}" if size > self.max_bytes else None

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
        kind = known_type(path)
        if kind is None:
            has_controls = len(head.translate(None, CONTROLS)) < len(head)
            is_text = not has_controls or head.startswith((b"#!", *BOMS[1:]))
            return None if is_text or utf16_without_mark(head) else BINARY
        is_code = not kind.prose and kind.name not in NO_CODE
        return MINIFIED if is_code and _is_minified(head[:HEAD_BYTES]) else None


def _is_minified(head: bytes) -> bool:
    marks = sum(map(head.count, (b"(", b")", b";")))
    is_dense = len(head) > MINIFIED_MIN and marks > MINIFIED_SHARE * len(head)
    return is_dense and is_in_long_lines(head)


def format_size(size: int) -> str:
    """1_000_000 → "1 MB", 1500 → "1.5 kB"."""
    amount, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"
