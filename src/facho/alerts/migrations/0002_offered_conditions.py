"""Which conditions an installation was offered; one in use has had the default rules of all that existed before."""

from typing import Any

from django.db import migrations, models

OFFERED = (
    "quota_violated",
    "quota_at_risk",
    "node_suspended",
    "olt_unreachable",
    "network_lost",
    "pollers_saturated",
    "queue_overload",
    "no_leader",
    "messages_not_taken",
    "pon_outage",
    "weak_light",
    "power_step",
    "onu_waiting",
)


def mark_offered(apps: Any, schema_editor: Any) -> None:
    rules, olts = apps.get_model("alerts", "AlertRule"), apps.get_model("hosts", "Olt")
    # Without any rule it is either new, or an operator deleted them all.
    if rules.objects.exists() or olts.objects.exists():
        offered = apps.get_model("alerts", "OfferedCondition")
        offered.objects.bulk_create(offered(kind=kind) for kind in OFFERED)


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_squashed_0006_nothing_is_polled")]

    operations = [
        migrations.AlterField(
            model_name="alertrule",
            name="kind",
            field=models.CharField(max_length=20, verbose_name="looks for"),
        ),
        migrations.AlterField(
            model_name="alert",
            name="told_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="notified"),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="clear_minutes",
            field=models.PositiveSmallIntegerField(default=0, help_text="Minutes it must be over before it counts as resolved.", verbose_name="clear minutes"),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="escalate_minutes",
            field=models.PositiveSmallIntegerField(blank=True, help_text="If it is not acknowledged; empty: never.", null=True, verbose_name="escalates after minutes"),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="hold_minutes",
            field=models.PositiveSmallIntegerField(default=0, help_text="Minutes it must last before notifying.", verbose_name="hold minutes"),
        ),
        migrations.AlterField(
            model_name="alertrule",
            name="sends_resolved",
            field=models.BooleanField(default=True, verbose_name="notifies when it is over"),
        ),
        migrations.CreateModel(
            name="OfferedCondition",
            fields=[("kind", models.CharField(max_length=20, primary_key=True, serialize=False))],
        ),
        migrations.RunPython(mark_offered, migrations.RunPython.noop),
    ]
