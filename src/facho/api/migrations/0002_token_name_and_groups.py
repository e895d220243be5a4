import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0001_initial"),
        ("hosts", "0007_olt_group"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="name",
            field=models.CharField(blank=True, db_default="", default="", max_length=80, verbose_name="name"),
        ),
        migrations.CreateModel(
            name="TokenGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "oltgroup",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="hosts.oltgroup", verbose_name="OLT group"
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="api.apitoken", verbose_name="API token"
                    ),
                ),
            ],
            options={
                "verbose_name": "limit to an OLT group",
                "verbose_name_plural": "limits to OLT groups",
                "constraints": [
                    models.UniqueConstraint(fields=("token", "oltgroup"), name="one_limit_per_token_and_group")
                ],
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="olt_groups",
            field=models.ManyToManyField(
                blank=True,
                help_text="Only the OLTs of these groups are shown; none: all that its owner sees.",
                related_name="api_tokens",
                through="api.TokenGroup",
                to="hosts.oltgroup",
                verbose_name="OLT groups",
            ),
        ),
    ]
