"""The manifest of an archive: its version, its members, and the migrations of its database."""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.db.migrations.loader import MigrationLoader

from apps.core import __version__
from apps.core.errors import InvalidInput
from apps.core.system.start_errors import is_unreleased
from apps.ingest import bases

FORMAT = 2
MANIFEST = "manifest.json"
DATABASE, SECRET = "codeinfo.sqlite3", "secret.key"
# Files beside the database that are copied if they exist.
SINGLE = (SECRET, bases.NAME)
LONGEST_MANIFEST = 64_000_000
# Raised for values that are not what they should be, by tarfile for malformed headers.
NONSENSE = (ValueError, ArithmeticError, LookupError, TypeError)
# Allowed names of members.
_MEMBER = re.compile(
    r"codeinfo\.sqlite3|secret\.key|ingest-bases\.json|index/[0-9a-f]{64}\.part"
    r"|texts/index\.sqlite3|texts/[0-9a-f]{1,16}\.zst"
)
_NUMBERS = re.compile(r"\d{1,9}")


def broken(reason: str) -> InvalidInput:
    """Return the error of a malformed archive."""
    return InvalidInput(f"This is not a valid backup of codeinfo: {reason}.", code="BACKUP_BROKEN")


def newer(reason: str) -> InvalidInput:
    """Return the error of an archive that this version cannot read."""
    return InvalidInput(f"A newer codeinfo made this backup: {reason}.", code="BACKUP_NEWER")


def older() -> InvalidInput:
    """Return the error of an archive that no release has made."""
    return InvalidInput(
        "This backup is from before the first release, and this codeinfo cannot read it.",
        code="BACKUP_OLDER",
    )


@dataclass(frozen=True)
class Member:
    """A file of the archive."""

    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The manifest, which is the first member of an archive."""

    created: str  # as `wire_time`
    members: Mapping[str, Member]  # by name
    migrations: Sequence[tuple[str, str]]  # that the database has
    format: int = FORMAT
    version: str = __version__

    def as_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @property
    def size(self) -> int:
        """Total size of the members in bytes."""
        return sum(member.size for member in self.members.values())

    @classmethod
    def read(cls, data: bytes) -> "Manifest":
        """Raises InvalidInput BACKUP_BROKEN, or BACKUP_NEWER or BACKUP_OLDER for another format."""
        try:
            values = json.loads(data)
            if values["format"] < FORMAT:
                raise older()
            if values["format"] != FORMAT:
                raise newer(f"its format is {values['format']!r}, this version knows {FORMAT}")
            return cls._of(values)
        except (*NONSENSE, AttributeError, RecursionError) as error:
            raise broken(f"its manifest cannot be read ({error})") from error

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> "Manifest":
        members = {
            str(name): Member(int(entry["size"]), str(entry["sha256"]))
            for name, entry in values["members"].items()
        }
        for name, member in members.items():
            if not _MEMBER.fullmatch(name) or member.size < 0:
                raise broken(f"it has a file {name!r}, which no backup has")
        if DATABASE not in members:
            raise broken(f"it has no {DATABASE}")
        return cls(
            created=str(values["created"]),
            members=members,
            migrations=[(str(app), str(name)) for app, name in values["migrations"]],
            version=str(values["version"]),
        )

    def refuse_other(self) -> None:
        """Raise InvalidInput BACKUP_NEWER or BACKUP_OLDER if this version cannot read them."""
        if _numbers(self.version) > _numbers(__version__):
            raise newer(f"its version is {self.version}, this is {__version__}")
        if is_unreleased(self.migrations):
            raise older()
        known = set(MigrationLoader(None).disk_migrations)
        if unknown := [migration for migration in self.migrations if migration not in known]:
            raise newer(f"its database has the migration {'.'.join(unknown[0])}")


def migrations_of(database: Path) -> list[tuple[str, str]]:
    """Return the migrations of an SQLite database."""
    with closing(sqlite3.connect(database)) as opened:
        rows = opened.execute("SELECT app, name FROM django_migrations ORDER BY id")
        return [(str(app), str(name)) for app, name in rows]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in _NUMBERS.findall(version)[:4]]
