"""Lists of violations are in the order of their times, whatever the OLT."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("execution_coordinator", "0004_acknowledgement")]

    operations = [
        migrations.AddIndex(
            model_name="quotaviolation",
            index=models.Index(fields=["created_at"], name="violation_created"),
        ),
    ]
