"""`manage.py worker`: ingests what is queued, in this process."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.config import config
from apps.core.data import folder_lock, lost_changes
from apps.core.errors import Unavailable
from apps.core.system.command_lines import manage
from apps.ingest.worker import process
from apps.site import schema
from apps.site.backup import restoring
from apps.site.connections import raise_file_limit


class Command(BaseCommand):
    help = (
        "Ingest what is queued, merge and check the index, and have Chroma follow it. `serve` "
        "starts a worker by itself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        # As `apps.ingest.worker.supervisor` starts it.
        parser.add_argument("--server", type=int, help="descriptor of the socket of a server")
        parser.add_argument("--lock", type=int, help="descriptor of its lock of the data folder")
        parser.add_argument("--idle", type=float, default=0.0, help="seconds until it ends")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["server"] is not None:
            process.run_for_server(options["server"], options["lock"], options["idle"])
            return
        raise_file_limit()
        try:
            folder_lock.claim()
        except Unavailable as error:
            raise CommandError(str(error)) from error
        if restoring.is_unfinished(config().data_dir):
            raise CommandError(f"A restore was interrupted: run {manage('restore')} again")
        lost_changes.keep()
        schema.check()
        self.stdout.write("codeinfo ingests what is queued  (Ctrl-C stops)")
        process.run_alone()
