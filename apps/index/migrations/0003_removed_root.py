from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("index", "0002_root_parts")]

    operations = [
        migrations.RemoveField("removedroot", "left_over"),
        migrations.RemoveField("removedroot", "store"),
    ]
