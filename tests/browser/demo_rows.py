"""Writes into the database of a running demo, as a process beside it: a day of its past, and the names of its jobs."""

import math
import os
import sys
from datetime import timedelta

import django

STEP = timedelta(minutes=5)
STEPS = range(1, 288)
# How far the light of an ONU moves between noon and midnight.
SWING_DB = 0.4


def main(language: str) -> None:
    """Name the jobs in a language; without one, give the ONUs a past."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "facho.core.settings"
    django.setup()
    if language:
        name_jobs(language)
    else:
        give_past()


def name_jobs(language: str) -> None:
    """Call the ready-made jobs as an installation in that language does."""
    from django.utils.translation import gettext, override

    from facho.snmp_jobs.models import SnmpJob
    from facho.snmp_jobs.ready_made import JOB_NAMES

    for name in JOB_NAMES:
        with override("es"):
            names = [name, gettext(name)]
        with override(language):
            SnmpJob.objects.filter(name__in=names).update(name=gettext(name))


def give_past() -> None:
    """Write what polls of the first OLT would have left behind: light and state, every five minutes."""
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
        append(min(seen_at) - step * STEP, Samples.of(ids, ports, values))


if __name__ == "__main__":
    main("".join(sys.argv[1:]))
