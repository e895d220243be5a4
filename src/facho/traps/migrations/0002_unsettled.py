from django.db import migrations, models


class Migration(migrations.Migration):
    # For a while both were one migration; databases of then have this as well.
    replaces = [("traps", "0001_squashed_0002_unsettled")]

    dependencies = [
        ("traps", "0001_initial"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="trap",
            name="trap_open",
        ),
        migrations.AlterField(
            model_name="trapsender",
            name="reason",
            field=models.CharField(
                choices=[
                    ("unknown_sender", "not the address of an OLT"),
                    ("ambiguous", "several OLTs have this address"),
                    ("rate", "too many at once"),
                    ("buffer", "faster than they could be read"),
                    ("malformed", "not valid SNMP"),
                    ("version", "another SNMP version"),
                    ("community", "wrong community"),
                    ("user", "unknown SNMPv3 user"),
                    ("level", "less protected than the OLT's credentials"),
                    ("signature", "wrong signature"),
                    ("time", "outside the time window"),
                ],
                max_length=15,
                verbose_name="reason",
            ),
        ),
        migrations.AddIndex(
            model_name="trap",
            index=models.Index(condition=models.Q(("outcome", "")), fields=["heard_at"], name="trap_open"),
        ),
    ]
