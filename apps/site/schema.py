"""The schema of the database, as far as this version knows it."""

from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps.core import start_errors


def check() -> None:
    """Raises ImproperlyConfigured where a newer codeinfo has changed the database, and
    DatabaseError where it cannot be read."""
    loader = MigrationLoader(connection)
    known = set(loader.disk_migrations)
    for migration in loader.disk_migrations.values():
        known |= {(app, name) for app, name in migration.replaces}
    start_errors.check_migrations(iter(loader.applied_migrations), known)
