"""Columns of the search of conversations, and pins."""

from typing import Any

from django.db import migrations, models

from apps.conversations.searching import columns

BATCH = 200


def fill(apps: Any, schema_editor: Any) -> None:
    """Write the columns of the turns that there are."""
    rows = apps.get_model("conversations", "Turn").objects
    batch = []
    for turn in rows.only("id", "parts").iterator(chunk_size=BATCH):
        for name, value in columns(turn.parts or []).items():
            setattr(turn, name, value)
        batch.append(turn)
        if len(batch) == BATCH:
            rows.bulk_update(batch, ["text", "repositories"])
            batch = []
    if batch:
        rows.bulk_update(batch, ["text", "repositories"])


class Migration(migrations.Migration):
    dependencies = [("conversations", "0002_command_runs")]

    operations = [
        migrations.AddField("conversation", "pinned", models.BooleanField(default=False)),
        migrations.AddField("turn", "text", models.TextField(blank=True, default="")),
        migrations.AddField("turn", "repositories", models.TextField(blank=True, default="")),
        migrations.RunPython(fill, migrations.RunPython.noop, atomic=False),
    ]
