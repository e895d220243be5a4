from typing import Any

from django.db import migrations

from facho.alerts.default_rules import seed_default_rules


def seed(apps: Any, schema_editor: Any) -> None:
    seed_default_rules(apps.get_model("alerts", "AlertRule"))


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_initial")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
