"""Lets an operator allow a job to poll more often than its vendor definition calls safe."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("snmp_jobs", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="snmpjob",
            name="ignores_safe_interval",
            field=models.BooleanField(
                default=False,
                help_text="Only when you know that these OLTs bear it:"
                " vendors' minimum intervals are then not enforced.",
                verbose_name="poll more often than is safe",
            ),
        ),
    ]
