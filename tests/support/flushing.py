"""Writes content types and permissions from memory after a test that commits. Django would work
them out for each model anew, which takes longer than most of these tests."""

from typing import Any

from django.core.management.commands import flush
from django.db.models import Model

_written: list[list[Model]] = []


def remember_what_migrations_write() -> None:
    emit: Any = flush.emit_post_migrate_signal  # type: ignore[attr-defined]

    def write(*args: Any, **options: Any) -> None:
        from django.contrib.auth.models import Permission  # noqa: PLC0415 - apps are loaded by now
        from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415

        if not _written:
            emit(*args, **options)
            _written.extend(list(model.objects.all()) for model in (ContentType, Permission))
            return
        ContentType.objects.clear_cache()
        for model, rows in zip((ContentType, Permission), _written, strict=True):
            model._default_manager.bulk_create(rows)

    flush.emit_post_migrate_signal = write  # type: ignore[attr-defined]
