"""`manage.py serve`: migrates the data folder, and serves everything from one process."""

import logging
from collections.abc import Sequence
from typing import Any

from channels.routing import get_default_application
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.conversations import recovery as conversation_recovery
from apps.core.config import config
from apps.core.data import database, folder_lock, lost_changes
from apps.core.errors import Unavailable, reason_of
from apps.core.security.access import check_exposure
from apps.core.security.authentication import TOKEN_FILE
from apps.core.system import disk, start_errors
from apps.core.system.command_lines import manage
from apps.core.system.unused import without
from apps.index import missing_runs
from apps.ingest.runs import orphans
from apps.ingest.runs import recovery as ingest_recovery
from apps.ingest.runs.orphans import Orphan
from apps.logs.store import StoreHandler, get_store
from apps.site import first_start, schema, server_file
from apps.site.backup import restoring
from apps.site.checks.parts import SHOWN
from apps.site.connections import file_problem, raise_file_limit

# Twisted imports it for TLS, which a proxy does here.
with without("OpenSSL"):
    from apps.site import server

logger = logging.getLogger("codeinfo.site")

# Longer than it takes the worker of a killed server to notice.
KILLED_SECONDS = 5.0


class Command(BaseCommand):
    help = "Serve pages, API, websockets and MCP; ingest in the background."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-migrate", action="store_true", help="leave the database schema as it is"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.serve(migrate=not options["no_migrate"])
        except (CommandError, Unavailable) as error:
            raise CommandError(str(error)) from error
        except Exception as error:
            raise CommandError(_reason(error)) from error

    def serve(self, *, migrate: bool) -> None:
        """Check the conditions of a start, then serve until the process is stopped."""
        raise_file_limit()
        if problem := file_problem():
            raise CommandError(problem)
        settings = config()
        if problem := start_errors.data_folder_problem(settings.data_dir.absolute()):
            raise CommandError(problem)
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        check_exposure(settings)
        if restoring.is_unfinished(settings.data_dir):
            raise CommandError(
                f"A restore to {settings.data_dir} was interrupted: run {manage('restore')} again"
            )
        listen_on = server.endpoints(settings)
        folder_lock.claim(KILLED_SECONDS)
        lost_changes.keep()
        self.look(lost_changes.describe())
        self.look(orphans.describe_new_database())
        if migrate:
            call_command("migrate", verbosity=0)  # checks the schema first
            database.fold_log("TRUNCATE")
        else:
            schema.check()
        if message := missing_runs.describe():
            logger.warning(message)
        conversation_recovery.recover()
        ingest_recovery.recover()
        password = first_start.ensure_admin(settings.data_dir)
        unknown = orphans.log_new()
        if not unknown:
            # Otherwise the user decides whether to restore the database or to ingest again.
            first_start.ensure_first_root(settings)

        # Imported after the checks, as it sets up the whole site.
        server.run(get_default_application(), listen_on, lambda: self.announce(password, unknown))

    def look(self, message: str) -> None:
        """Tell what a person should look at, before anything is created."""
        if message:
            logger.warning(message)
            self.stdout.write(f"  LOOK         {message}")
            self.stdout.flush()

    def announce(self, password: str | None, unknown: Sequence[Orphan] = ()) -> None:
        settings = config()
        url = server_file.url(settings)
        self.stdout.write(f"codeinfo serves on {url}  (Ctrl-C stops)")
        self.stdout.write(f"  data folder  {settings.data_dir}")
        if password:
            self.stdout.write(f"  admin        user admin, password {password} (shown once)")
        token = settings.data_dir / TOKEN_FILE
        if token.exists() and token.read_text() in (settings.api_token, settings.mcp_token):
            self.stdout.write(f"  token        for API and MCP, in {token}")
        if problem := get_store().file.problem:
            self.stdout.write(
                f"  LOOK         the log is kept in memory only: {reason_of(problem)}"
            )
        for path, kind in disk.misplaced().items():
            self.stdout.write(f"  LOOK         {path} must be a {kind}: /health says what to do")
        if unknown:
            one = len(unknown) == 1
            count = f"{len(unknown)} folder{' that is' if one else 's that are'}"
            page = f"{url}/ingest"
            self.stdout.write(
                f"  LOOK         the index has {count} not in this database. Nothing is "
                "deleted. If this data"
            )
            self.stdout.write(
                "               folder had another database, restore it; otherwise ingest again: "
                f"{page}"
            )
            for orphan in unknown[:SHOWN]:
                self.stdout.write(f"               {orphan.label}")
        self.stdout.write(f"  chat         {url}/chat")
        self.stdout.flush()


def _reason(error: Exception) -> str:
    """Return a message for the console. The traceback of an unexpected error is logged; without a
    log, the error is raised."""
    if message := start_errors.sentence(error):
        return message
    trace = type(error), error, error.__traceback__
    facts = logger.name, logging.ERROR, __file__, 0, "the start failed", (), trace
    log = get_store()
    StoreHandler(log).emit(logger.makeRecord(*facts))
    if log.file.problem is not None:
        raise error
    return f"{type(error).__name__}: {error}. The log has more: {log.file.path}"
