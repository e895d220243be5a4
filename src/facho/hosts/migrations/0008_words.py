"""Names for rows that people meet only where they delete an OLT."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("hosts", "0007_olt_group")]

    operations = [
        migrations.AlterModelOptions(
            name="historyrow",
            options={"verbose_name": "row of an OLT's tables", "verbose_name_plural": "rows of OLTs' tables"},
        ),
        migrations.AlterModelOptions(
            name="olthistorysamples",
            options={
                "verbose_name": "day of measured values of OLTs",
                "verbose_name_plural": "days of measured values of OLTs",
            },
        ),
        migrations.AlterModelOptions(
            name="olthistoryhours",
            options={
                "verbose_name": "day of hourly averages of OLTs",
                "verbose_name_plural": "days of hourly averages of OLTs",
            },
        ),
        migrations.AlterModelOptions(
            name="olthistorydays",
            options={
                "verbose_name": "month of daily averages of OLTs",
                "verbose_name_plural": "months of daily averages of OLTs",
            },
        ),
    ]
