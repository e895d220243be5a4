"""Finds what ended lately, and what is active, without reading the history."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("executions", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(fields=["finished_at"], name="execution_finished"),
        ),
    ]
