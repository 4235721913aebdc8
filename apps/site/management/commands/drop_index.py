"""`manage.py drop_index STORE…`: deletes indexes that have no root in the database."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.errors import CodeinfoError
from apps.index import stores
from apps.index.mapped import collecting
from apps.index.models import Root
from apps.index.vectors.store import claim_store, reset_store
from apps.ingest.runs import orphans
from apps.ingest.runs.orphans import Orphan


class Command(BaseCommand):
    help = (
        "Delete the index of roots that are not in this database; `doctor` lists "
        "them. With the embedded Chroma, stop the server first."
    )
    requires_system_checks: list[str] = []  # they import all views

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("store", nargs="+", metavar="STORE", help="as doctor shows it")
        parser.add_argument(
            "--of-another-installation",
            action="store_true",
            help="also what another installation on the same Chroma server has written",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [_id(text) for text in options["store"]]
        try:
            claim_store()
            orphan_of = {orphan.store: orphan for orphan in orphans.find()}
            for store in chosen:
                _check(store, orphan_of.get(store), others=options["of_another_installation"])
            for store in chosen:
                self._drop(orphan_of[store])
        except CodeinfoError as error:
            raise CommandError(error.message) from error
        finally:
            reset_store()

    def _drop(self, orphan: Orphan) -> None:
        count = stores.drop_vectors(orphan.store)
        collecting.drop(orphan.store)
        number = "broken" if count is None else f"{count:,}"
        vectors = f"{number} vector{'' if count == 1 else 's'}"
        self.stdout.write(f"Deleted {orphan.label}: {vectors}.")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is not the id of a store: doctor lists them.") from None


def _check(store: UUID, orphan: Orphan | None, *, others: bool) -> None:
    """Raise CommandError if the index must not be deleted."""
    if root := Root.objects.filter(store=store).first():
        raise CommandError(
            f"{root.name} is in use: remove it on the Ingest page. drop_index deletes "
            "only what the database does not know."
        )
    if orphan is None:
        raise CommandError(f"No index of {store} is left over here.")
    if orphan.elsewhere and not others:
        raise CommandError(
            f"{orphan.label} belongs to another installation on this Chroma server. If that is "
            "gone, add --of-another-installation."
        )
