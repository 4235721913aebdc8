"""The base of commands that need the stores, or make them."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from apps.core.errors import CodeinfoError
from apps.logs.redaction import on_one_line

MAX_MESSAGE = 2_000


class StoreCommand(BaseCommand):
    """A command that reports what it does, and may answer in JSON."""

    requires_system_checks: list[str] = []  # they import all views, and the database may be missing

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs")

    def report(self, message: str) -> None:
        self.stderr.write(message)

    @contextmanager
    def errors(self, stopped: str = "stopped before the end") -> Iterator[None]:
        """End the command with a line for the error of the block, or with `stopped` at Ctrl-C."""
        try:
            yield
        except CodeinfoError as error:
            raise CommandError(on_one_line(error.message, MAX_MESSAGE)) from error
        except DatabaseError as error:
            raise CommandError(f"The database does not answer: {error}") from error
        except KeyboardInterrupt:
            raise CommandError(stopped, returncode=130) from None
