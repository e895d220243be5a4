import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0002_default_rules"),
        ("hosts", "0007_olt_group"),
    ]

    operations = [
        migrations.AlterField(
            model_name="alertrule",
            name="olt_group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="hosts.oltgroup",
                verbose_name="OLT group",
            ),
        ),
    ]
