"""Gives the ONUs of a running demo the day before it: light and state every five minutes. Run beside the demo."""

import math
import os
from datetime import timedelta

import django

STEP = timedelta(minutes=5)
STEPS = range(1, 288)
# How far the light of an ONU moves between noon and midnight.
SWING_DB = 0.4


def main() -> None:
    """Write what polls of the first OLT would have left behind."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "facho.core.settings"
    django.setup()
    from facho.onus.history import Samples, append
    from facho.onus.history_metrics import STATE_CODES, Metric
    from facho.onus.models import Onu

    onus = Onu.objects.filter(olt__name="olt-001", reading__rx_power_cdbm__isnull=False)
    rows = list(onus.values_list("id", "pon_port_id", "reading__rx_power_cdbm", "first_seen_at"))
    ids, ports, light, seen_at = zip(*rows, strict=True)
    for step in reversed(STEPS):
        received = [cdbm / 100 + SWING_DB * math.sin(step / 45) for cdbm in light]
        values = {
            Metric.RX_POWER: received,
            Metric.OLT_RX_POWER: [dbm - 1.6 for dbm in received],
            Metric.STATE: [STATE_CODES["online"]] * len(ids),
        }
        append(min(seen_at) - step * STEP, Samples(ids, ports, values))


if __name__ == "__main__":
    main()
