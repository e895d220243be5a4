"""Expired rows are found without reading those that stay."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("execution_coordinator", "0006_packed_at")]

    operations = [
        migrations.AddIndex(
            model_name="coordinatorlog",
            index=models.Index(fields=["timestamp"], name="log_timestamp"),
        ),
        migrations.AddIndex(
            model_name="executionplan",
            index=models.Index(fields=["period_end"], name="plan_period_end"),
        ),
    ]
