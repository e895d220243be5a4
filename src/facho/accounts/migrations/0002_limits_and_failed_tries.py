import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("hosts", "0007_olt_group"),
    ]

    operations = [
        # The table is the one that Django made for the field; it gets a name of its own, so that it can protect groups.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ProfileGroup",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "oltgroup",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                to="hosts.oltgroup",
                                verbose_name="OLT group",
                            ),
                        ),
                        (
                            "profile",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                to="accounts.profile",
                                verbose_name="profile",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "limit to an OLT group",
                        "verbose_name_plural": "limits to OLT groups",
                        "db_table": "accounts_profile_olt_groups",
                        "unique_together": {("profile", "oltgroup")},
                    },
                ),
                migrations.AlterField(
                    model_name="profile",
                    name="olt_groups",
                    field=models.ManyToManyField(
                        blank=True,
                        help_text="Only the OLTs of these groups are shown; none: all OLTs.",
                        related_name="profiles",
                        through="accounts.ProfileGroup",
                        to="hosts.oltgroup",
                        verbose_name="OLT groups",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FailedTries",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64, unique=True)),
                ("failures", models.PositiveIntegerField(verbose_name="failures")),
                ("failed_at", models.DateTimeField(db_index=True, verbose_name="last failure")),
            ],
            options={
                "verbose_name": "failed tries",
                "verbose_name_plural": "failed tries",
            },
        ),
    ]
