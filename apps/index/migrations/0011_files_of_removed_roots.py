import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0010_sharing'),
    ]

    operations = [
        migrations.AlterField(
            model_name='sourcefile',
            name='root',
            field=models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='ingest.root'),
        ),
    ]
