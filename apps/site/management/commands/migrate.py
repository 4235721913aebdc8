"""`manage.py migrate`: Django's, for databases that this version can read."""

from typing import Any

from django.core.management.commands import migrate

from apps.site import schema


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Raises as `schema.check`, before anything is changed."""
        schema.check()
        super().handle(*args, **options)
