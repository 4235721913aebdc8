from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='SavedServer',
            fields=[
                ('kind', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('address', models.CharField(max_length=300)),
                ('key', models.TextField(blank=True, default='', editable=False)),
                ('saved_at', models.DateTimeField(auto_now=True)),
            ],
        ),
    ]
