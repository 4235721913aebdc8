"""Writes content types and permissions from memory after a test that commits. Django would work
them out for each model anew, which takes longer than most of these tests."""

from typing import Any

from django.core.management.commands import flush

_types: list[Any] = []
_permissions: list[Any] = []


def remember_what_migrations_write() -> None:
    emit: Any = flush.emit_post_migrate_signal  # type: ignore[attr-defined]

    def write(*args: Any, **options: Any) -> None:
        from django.contrib.auth.models import Permission  # noqa: PLC0415 - apps are loaded by now
        from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415

        if not _types:
            emit(*args, **options)
            _types.extend(ContentType.objects.all())
            _permissions.extend(Permission.objects.all())
            return
        ContentType.objects.clear_cache()
        ContentType.objects.bulk_create(_types)
        Permission.objects.bulk_create(_permissions)

    flush.emit_post_migrate_signal = write  # type: ignore[attr-defined]
