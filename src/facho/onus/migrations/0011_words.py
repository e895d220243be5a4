"""Names for rows that people meet only where they delete an OLT."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("onus", "0010_folded_text")]

    operations = [
        migrations.AlterModelOptions(
            name="historysamples",
            options={
                "verbose_name": "day of measured values of ONUs",
                "verbose_name_plural": "days of measured values of ONUs",
            },
        ),
        migrations.AlterModelOptions(
            name="historyhours",
            options={
                "verbose_name": "day of hourly averages of ONUs",
                "verbose_name_plural": "days of hourly averages of ONUs",
            },
        ),
        migrations.AlterModelOptions(
            name="historydays",
            options={
                "verbose_name": "month of daily averages of ONUs",
                "verbose_name_plural": "months of daily averages of ONUs",
            },
        ),
        migrations.AlterModelOptions(
            name="historystay",
            options={"verbose_name": "stay of an ONU at a port", "verbose_name_plural": "stays of ONUs at ports"},
        ),
    ]
