"""`manage.py set_aside`: makes room for a new data folder.

For data from before the first release, which this version cannot read but for the conversations.
"""

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from apps.conversations import exporting
from apps.conversations.answers.exchange import exchanges_of
from apps.conversations.models import Conversation, Turn
from apps.core.config import config
from apps.core.data import folder_lock
from apps.core.errors import CodeinfoError
from apps.core.security.private_files import database_files
from apps.core.system import start_errors
from apps.index import freeze
from apps.ingest import bases

FOLDER = "set-aside-"
# The columns of a turn that such data has, of those that are exported.
TURN = (
    *("id", "conversation_id", "role", "parts", "provider", "model", "status", "error"),
    *("usage", "timing", "command", "created_at"),
)
# What stays: it is about other programs, and is of this version, too.
KEPT = frozenset({"clients", "codex", bases.NAME, folder_lock.NAME, *freeze.NAMES})


class Command(BaseCommand):
    help = (
        "Export the conversations of data from before the first release as Markdown, and move the "
        "files of the data folder aside. Stop the server first. Deletes nothing."
    )
    # The database has another schema.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not start_errors.is_unreleased(set(MigrationRecorder(connection).applied_migrations())):
            raise CommandError("This codeinfo can read the data: there is nothing to set aside.")
        try:
            folder_lock.claim()
        except CodeinfoError as error:
            raise CommandError(error.message) from error
        data = config().data_dir.absolute()
        folder = data / f"{FOLDER}{datetime.now():%Y-%m-%d-%H%M%S}"
        conversations = folder / "conversations"
        conversations.mkdir(parents=True)
        count = _export(conversations)
        connection.close()
        for path in _files(data):
            shutil.move(path, folder)
        what = f"{count} conversation{'' if count == 1 else 's'}"
        self.stdout.write(f"Moved the data to {folder}, and exported {what} to {conversations}.")


def _export(folder: Path) -> int:
    """Write every conversation to a file. Return their number."""
    # The other columns may be missing.
    rows = Conversation.objects.order_by("created_at", "id").values("id", "title")
    for number, row in enumerate(rows, 1):
        conversation = Conversation(**row)
        turns = Turn.objects.filter(conversation=conversation).order_by("created_at", "id")
        views = exchanges_of(Turn(**turn) for turn in turns.values(*TURN))
        file = folder / f"{number:04}-{exporting.file_name(conversation.title)}.md"
        file.write_text(exporting.as_markdown(conversation, views), encoding="utf-8")
    return len(rows)


def _files(data: Path) -> Iterator[Path]:
    """Yield what is in the data folder, and last the database: after a kill, this is repeated."""
    database = [path.absolute() for path in database_files() if path.exists()]
    for path in sorted(data.iterdir()):
        if path not in database and path.name not in KEPT and not path.name.startswith(FOLDER):
            yield path
    yield from reversed(database)
