"""Expired messages are found without reading those that stay."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0003_rules_hold_their_group")]

    operations = [
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(fields=["created_at"], name="notice_created"),
        ),
    ]
