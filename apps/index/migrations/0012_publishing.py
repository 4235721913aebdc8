import uuid

from django.db import migrations, models


def drop_second_index(apps, schema_editor):
    """Drop the index of SourceFile.run beside that of its foreign key: MongoDB takes no two of one
    column, so the first migration no longer makes it."""
    if schema_editor.connection.vendor != "mongodb":
        schema_editor.execute("DROP INDEX IF EXISTS ingest_sour_run_id_210c66_idx")


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0011_files_of_removed_roots'),
    ]

    operations = [
        migrations.RunPython(drop_second_index, migrations.RunPython.noop),
        migrations.AddField(
            model_name='indexlock',
            name='token',
            field=models.UUIDField(default=uuid.uuid4, editable=False),
        ),
        migrations.AddField(
            model_name='ingestrun',
            name='publishing',
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name='root',
            name='fenced_run_id',
            field=models.UUIDField(editable=False, null=True),
        ),
    ]
