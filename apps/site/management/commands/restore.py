"""`manage.py restore`: restores a backup to a new data folder."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.index.types import never_cancelled
from apps.logs.redaction import on_one_line
from apps.site.backup.restoring import restore
from apps.site.management.commands.verify_index import as_table


class Command(BaseCommand):
    help = (
        "Restore FILE to a new or empty data folder, and verify it. Exit code 1 if it is refused, "
        "or if rows and the index differ, as they did when the backup was made."
    )
    # The database of this installation may be missing.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--data-dir", help="the folder; CODEINFO_DATA_DIR if not given")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(options["data_dir"] or config().data_dir).expanduser().absolute()
        file = Path(options["file"]).expanduser().absolute()
        try:
            done = restore(file, folder, check=never_cancelled, report=self._report)
        except CodeinfoError as error:
            raise CommandError(on_one_line(error.message, 2_000)) from error
        except KeyboardInterrupt:
            raise CommandError(
                "stopped before the end: nothing was restored", returncode=130
            ) from None
        if options["json"]:
            self.stdout.write(json.dumps(done))
        else:
            self.stdout.write(as_table(done["found"]))
            self.stdout.write(
                f"Restored the backup of {on_one_line(done['created'])} to {done['folder']}."
            )
        if not done["found"]["whole"]:
            raise SystemExit(1)

    def _report(self, message: str) -> None:
        self.stderr.write(message)
