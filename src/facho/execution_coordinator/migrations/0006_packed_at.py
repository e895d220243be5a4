"""An OLT remembers when its grids were moved apart: at most once an hour, whatever becomes of the log."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("execution_coordinator", "0005_violation_created")]

    operations = [
        migrations.AddField(
            model_name="oltstate",
            name="packed_at",
            field=models.DateTimeField(null=True),
        ),
    ]
