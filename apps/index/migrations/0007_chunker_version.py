from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("ingest", "0006_removed_root"),
    ]

    operations = [
        migrations.RenameField(
            model_name="root",
            old_name="recipe",
            new_name="chunker_version",
        ),
    ]
