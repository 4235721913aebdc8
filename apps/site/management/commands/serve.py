"""`manage.py serve`: bring the data folder up to date and serve everything from one process."""

from collections.abc import Sequence
from typing import Any

from channels.routing import get_default_application
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.conversations import recovery as conversation_recovery
from apps.ingest.runs import recovery as ingest_recovery
from apps.ingest.runs.orphans import Orphan
from apps.ingest.vectors.store import claim_store
from apps.site import first_start, server
from apps.site.checks.parts import SHOWN
from codeinfo.access import check_exposure
from codeinfo.conf import knobs
from codeinfo.errors import Unavailable


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
        listen_on = server.endpoints(known)
        try:
            claim_store()
        except Unavailable as error:
            raise CommandError(error.message) from error
        if not options["no_migrate"]:
            call_command("migrate", verbosity=0)
        conversation_recovery.recover()
        ingest_recovery.recover()
        password = first_start.ensure_admin(known.data_dir)
        unknown = first_start.unknown_roots()
        if not unknown:
            first_start.ensure_first_root(known)

        # Importing it sets up the whole site, which must not happen before the checks above.
        server.run(get_default_application(), listen_on, lambda: self.announce(password, unknown))

    def announce(self, password: str | None, unknown: Sequence[Orphan] = ()) -> None:
        known = knobs()
        self.stdout.write(f"codeinfo serves on http://{known.bind}:{known.port}  (Ctrl-C stops)")
        self.stdout.write(f"  data folder  {known.data_dir}")
        if password:
            self.stdout.write(f"  admin        user admin, password {password} (shown once)")
        if unknown:
            count = f"{len(unknown)} folder{'' if len(unknown) == 1 else 's'}"
            page = f"http://{known.bind}:{known.port}/ingest"
            self.stdout.write(
                f"  LOOK         the index holds {count} that this database does not know. Nothing "
                "is deleted. If another"
            )
            self.stdout.write(
                f"               database was here, put it back; else ingest again: {page}"
            )
            for each in unknown[:SHOWN]:
                self.stdout.write(f"               {each.label}")
        self.stdout.flush()
