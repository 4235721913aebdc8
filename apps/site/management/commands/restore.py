"""`manage.py restore`: restores a backup to a new data folder."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.config import config
from apps.index.types import never_cancelled
from apps.logs.redaction import on_one_line
from apps.site.backup.restoring import restore
from apps.site.management.commands.verify_index import as_table
from apps.site.management.store_command import StoreCommand


class Command(StoreCommand):
    help = (
        "Restore FILE to a new or empty data folder, and verify it. Exit code 1 if it is refused, "
        "or if rows and the index differ, as they did when the backup was made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--data-dir", help="the folder; CODEINFO_DATA_DIR if not given")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(options["data_dir"] or config().data_dir).expanduser().absolute()
        file = Path(options["file"]).expanduser().absolute()
        with self.errors("stopped before the end: nothing was restored"):
            done = restore(file, folder, check=never_cancelled, report=self.report)
        if options["json"]:
            self.stdout.write(json.dumps(done))
        else:
            self.stdout.write(as_table(done["found"]))
            self.stdout.write(
                f"Restored the backup of {on_one_line(done['created'])} to {done['folder']}."
            )
        if not done["found"]["whole"]:
            raise SystemExit(1)
