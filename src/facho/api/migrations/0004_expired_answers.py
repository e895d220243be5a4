"""Expired answers are found without reading those that stay."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0003_kept_answer")]

    operations = [
        migrations.AddIndex(
            model_name="keptanswer",
            index=models.Index(fields=["created_at"], name="kept_answer_created"),
        ),
    ]
