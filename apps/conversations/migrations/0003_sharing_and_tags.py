import uuid

import apps.conversations.models
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0002_branches'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='tags',
            field=models.TextField(blank=True, default='', editable=False),
        ),
        migrations.AddField(
            model_name='turn',
            name='rating',
            field=models.SmallIntegerField(blank=True, choices=[(1, 'Good answer'), (-1, 'Bad answer')], null=True),
        ),
        migrations.CreateModel(
            name='Preset',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=60)),
                ('text', models.TextField()),
                ('key', models.CharField(editable=False, max_length=255, unique=True)),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['key'],
            },
        ),
        migrations.CreateModel(
            name='Share',
            fields=[
                ('token_hash', models.CharField(editable=False, max_length=64, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=255)),
                ('html', models.TextField()),
                ('created_at', models.DateTimeField(default=apps.conversations.models.now_ms)),
                ('expires_at', models.DateTimeField()),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='conversations.conversation')),
                ('creator', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
    ]
