"""`manage.py backup`: the database and the index as one file."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from apps.core.errors import CodeinfoError
from apps.site.control.client import perform


class Command(BaseCommand):
    help = (
        "Write the database, the index and secret.key to FILE, a .tar.gz that only its owner can "
        "read. A running server does the work; otherwise this process does."
    )
    requires_system_checks: list[str] = []  # they import all views

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        # Explicit, as argparse would take it for an abbreviation of --force-color.
        parser.add_argument("--force", action="store_true", help="replace FILE")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        # Absolute, as the server has another current folder.
        file = str(Path(options["file"]).expanduser().absolute())
        try:
            made = perform("backup", {"file": file, "force": options["force"]}, self._report)
        except CodeinfoError as error:
            raise CommandError(error.message) from error
        except DatabaseError as error:
            raise CommandError(f"The database does not answer: {error}") from error
        except KeyboardInterrupt:
            raise CommandError("stopped before the end", returncode=130) from None
        if options["json"]:
            self.stdout.write(json.dumps(made))
            return
        for root in made["roots"]:
            self.stdout.write(f"{root['path']}  {root['files']:,} files, {root['chunks']:,} chunks")
        self.stdout.write(f"{made['file']}  {made['bytes']:,} bytes, {made['members']} files")

    def _report(self, message: str) -> None:
        self.stderr.write(message)
