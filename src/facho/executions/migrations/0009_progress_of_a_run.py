"""How far a run has come."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("executions", "0001_squashed_0008_nothing_to_ask")]

    operations = [
        migrations.AddField("execution", "progress", models.JSONField(blank=True, null=True)),
    ]
