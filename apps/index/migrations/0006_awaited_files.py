from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('index', '0005_encoding'),
    ]

    operations = [
        migrations.AddField(
            model_name='root',
            name='awaited_files',
            field=models.PositiveIntegerField(editable=False, null=True),
        ),
    ]
