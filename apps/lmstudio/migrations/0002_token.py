from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lmstudio", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="savedaddress",
            name="token",
            field=models.TextField(blank=True, default="", editable=False),
        ),
    ]
