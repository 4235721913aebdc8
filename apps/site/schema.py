"""Checks the schema of the database."""

from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps.core.system import start_errors


def check() -> None:
    """Raise ImproperlyConfigured if a newer codeinfo, or one from before the first release, has
    migrated the database, and DatabaseError if it cannot be read."""
    loader = MigrationLoader(connection)
    known = set(loader.disk_migrations)
    for migration in loader.disk_migrations.values():
        known |= {(app, name) for app, name in migration.replaces}
    start_errors.check_migrations(set(loader.applied_migrations), known)
