"""`manage.py backup`: the database and the index as one file."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.site.control.client import perform
from apps.site.management.store_command import StoreCommand


class Command(StoreCommand):
    help = (
        "Write the database, the index and secret.key to FILE, a .tar.gz that only its owner can "
        "read. A running server does the work; otherwise this process does."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE")
        # Explicit, as argparse would take it for an abbreviation of --force-color.
        parser.add_argument("--force", action="store_true", help="replace FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        # Absolute, as the server has another current folder.
        file = str(Path(options["file"]).expanduser().absolute())
        with self.errors():
            made = perform("backup", {"file": file, "force": options["force"]}, self.report)
        if options["json"]:
            self.stdout.write(json.dumps(made))
            return
        for root in made["roots"]:
            counts = f"{root['files']:,} files, {root['chunks']:,} passages"
            self.stdout.write(f"{root['path']}  {counts}")
        self.stdout.write(f"{made['file']}  {made['bytes']:,} bytes, {made['members']} files")
