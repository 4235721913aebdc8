"""`manage.py serve`: bring the data folder up to date and serve everything from one process."""

import logging
from typing import Any

from channels.routing import get_default_application
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.conversations import recovery as conversation_recovery
from apps.ingest.runs import behind
from apps.ingest.runs import recovery as ingest_recovery
from apps.ingest.vectors.store import claim_store
from apps.site import first_start, server
from apps.site.backup import restoring
from codeinfo.access import check_exposure
from codeinfo.conf import knobs
from codeinfo.errors import Unavailable

logger = logging.getLogger("codeinfo.site")


class Command(BaseCommand):
    help = "Serve pages, API, websockets and MCP; ingest in the background."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-migrate", action="store_true", help="leave the database schema as it is"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        known = knobs()
        try:
            check_exposure(known)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        if restoring.is_unfinished(known.data_dir):
            raise CommandError(
                f"A restore to {known.data_dir} ended before its time: run manage.py restore again"
            )
        listen_on = server.endpoints(known)
        try:
            claim_store()
        except Unavailable as error:
            raise CommandError(error.message) from error
        if not options["no_migrate"]:
            call_command("migrate", verbosity=0)
        if told := behind.told():
            logger.warning(told)
        conversation_recovery.recover()
        ingest_recovery.recover()
        password = first_start.ensure_admin(known.data_dir)
        first_start.ensure_first_root(known)

        # Importing it sets up the whole site, which must not happen before the checks above.
        server.run(get_default_application(), listen_on, lambda: self.announce(password))

    def announce(self, password: str | None) -> None:
        known = knobs()
        self.stdout.write(f"codeinfo serves on http://{known.bind}:{known.port}  (Ctrl-C stops)")
        self.stdout.write(f"  data folder  {known.data_dir}")
        if password:
            self.stdout.write(f"  admin        user admin, password {password} (shown once)")
        self.stdout.flush()
