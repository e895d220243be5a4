"""Names for rows that people meet only where they delete an OLT."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("executions", "0005_onu_read")]

    operations = [
        migrations.AlterModelOptions(
            name="olttoken",
            options={"verbose_name": "run counter of an OLT", "verbose_name_plural": "run counters of OLTs"},
        ),
    ]
