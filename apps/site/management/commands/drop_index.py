"""`manage.py drop_index ROOT…`: deletes the parts of roots that the database does not know."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.index.mapped import collecting
from apps.index.models import Root
from apps.ingest.runs import orphans


class Command(BaseCommand):
    help = "Delete the index of roots that are not in this database; `doctor` lists them."
    requires_system_checks: list[str] = []  # they import all views

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("root", nargs="+", metavar="ROOT", help="as doctor shows it")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [_id(text) for text in options["root"]]
        labels = {orphan.root: orphan.label for orphan in orphans.find()}
        for root in chosen:
            if root not in labels:
                raise _refusal(root)
        for root in chosen:
            files = collecting.drop(root)
            self.stdout.write(f"Deleted {labels[root]}: {files} file{'' if files == 1 else 's'}.")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is not the id of a root: doctor lists them.") from None


def _refusal(root: UUID) -> CommandError:
    if row := Root.objects.filter(id=root).first():
        return CommandError(
            f"{row.name} is in use: remove it on the Ingest page. drop_index deletes "
            "only what the database does not know."
        )
    return CommandError(f"No index of {root} is left over here.")
