from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="SavedServer",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, primary_key=True, serialize=False
                    ),
                ),
                ("base_url", models.CharField(max_length=300)),
                ("api_key", models.TextField(blank=True, default="", editable=False)),
                ("saved_at", models.DateTimeField(auto_now=True)),
            ],
        ),
    ]
