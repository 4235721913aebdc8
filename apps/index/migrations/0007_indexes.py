import django.db.models.deletion
from django.db import migrations, models


TABLE = "index_sourcefile"
# Rows of the table, and of these, those that are equal in the first column, in the first two, …
STATISTICS = {
    "index_sourcefile_path": "70000 10000 1",
    "index_sourc_root_id_de8b4a_idx": "70000 10000 8000",
    "index_sourc_root_id_8d351c_idx": "70000 10000 8000",
}


def index_paths(apps, schema_editor):
    """Only in SQLite: an index of PostgreSQL holds no text of more than 2,700 bytes.

    Without statistics SQLite takes another index, which leads to all files of a root. To add a
    column, Django makes the table again, and without this index: call this after it.
    """
    if schema_editor.connection.vendor != "sqlite":
        return
    schema_editor.execute(
        f"CREATE INDEX IF NOT EXISTS index_sourcefile_path ON {TABLE} (root_id, path)"
    )
    schema_editor.execute(f"ANALYZE {TABLE}")
    schema_editor.execute("DELETE FROM sqlite_stat1 WHERE tbl = %s", [TABLE])
    for name, statistics in STATISTICS.items():
        row = [TABLE, name, statistics]
        schema_editor.execute("INSERT INTO sqlite_stat1 VALUES (%s, %s, %s)", row)


class Migration(migrations.Migration):

    dependencies = [
        ('index', '0006_awaited_files'),
    ]

    operations = [
        # Others begin with it.
        migrations.AlterField(
            model_name='sourcefile',
            name='root',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='index.root'),
        ),
        # Not atomic: MongoDB would connect for it.
        migrations.RunPython(index_paths, migrations.RunPython.noop, atomic=False),
    ]
