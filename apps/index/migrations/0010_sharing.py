from django.db import migrations, models
from django.db.models import F


def keep_ids(apps, schema_editor):
    """Each root keeps its own store, and each file its own document."""
    apps.get_model("ingest", "Root").objects.update(store=F("id"))
    apps.get_model("ingest", "SourceFile").objects.update(document=F("id"))


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0009_texts'),
    ]

    operations = [
        migrations.AddField(
            model_name='root',
            name='store',
            field=models.UUIDField(db_index=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='sourcefile',
            name='document',
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.RunPython(keep_ids, migrations.RunPython.noop, atomic=False),
        migrations.AlterField(
            model_name='root',
            name='store',
            field=models.UUIDField(db_index=True, editable=False),
        ),
        migrations.AlterField(
            model_name='sourcefile',
            name='document',
            field=models.UUIDField(editable=False),
        ),
        migrations.AddField(
            model_name='removedroot',
            name='store',
            field=models.UUIDField(db_index=True, null=True),
        ),
        migrations.AddField(
            model_name='removedroot',
            name='left_over',
            field=models.BooleanField(db_index=True, default=False),
        ),
        migrations.AddIndex(
            model_name='sourcefile',
            index=models.Index(fields=['document'], name='ingest_sour_documen_b4a644_idx'),
        ),
    ]
