"""Names for rows that people meet only where they delete an OLT."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("execution_coordinator", "0007_expired_rows")]

    operations = [
        migrations.AlterModelOptions(
            name="oltstate",
            options={"verbose_name": "last known state of an OLT", "verbose_name_plural": "last known states of OLTs"},
        ),
    ]
