"""Played by the code of the previous release and by ours: `fill` writes what a provider has, `print` shows every row.

It is a program of its own, handed to the Python of either, and uses only what both have.
"""

import json
import sys
from datetime import UTC, datetime, timedelta

from facho.core.product import open_product

# Lately, so that nothing is old enough to be deleted or summarised.
NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
# A metric is a number that stays; the module that names it moved.
RX_POWER = 1
EPOCH, FAR = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def fill() -> None:
    from django.contrib.auth.models import User

    from facho.accounts.models import Profile
    from facho.accounts.roles import Role, give_role
    from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
    from facho.api.tokens import create_token
    from facho.execution_coordinator.models import CoordinatorLog, QuotaTracker, QuotaViolation
    from facho.executions.models import Execution, ExecutionAttempt
    from facho.hosts.models import Olt, OltGroup
    from facho.infrastructure.secrets import Secret
    from facho.onus.history import Samples, append
    from facho.onus.models import Onu, OnuCustomer, OnuEvent, OnuReading, Outage, PonPort
    from facho.snmp_jobs.models import WorkflowNode
    from facho.snmp_jobs.ready_made import apply_ready_made_jobs
    from facho.traps.models import Trap, TrapSender
    from facho.traps.store import switch

    region = OltGroup.objects.create(name="norte")
    people = [User.objects.create_user(name, password="correct-horse-battery-7") for name in ("eva", "leo")]
    for person, role in zip(people, (Role.ADMIN, Role.VIEWER), strict=True):
        give_role(person, role)
    Profile.objects.create(user=people[1]).olt_groups.add(region)
    create_token(people[0], name="billing")

    olt = Olt.objects.create(
        name="norte-1",
        host="192.0.2.20",
        address="192.0.2.20",
        vendor="huawei_smartax",
        community=Secret("ñandú-7"),
        group=region,
        enabled=False,
        discovered_at=NOW,
    )
    apply_ready_made_jobs(olt, now=NOW)
    port = PonPort.objects.create(olt=olt, frame=0, slot=1, port=3)
    onus = [
        Onu.objects.create(
            olt=olt, pon_port=port, onu_id=n, serial=f"HWTC0000000{n}", description=f"Año {n}", first_seen_at=NOW
        )
        for n in range(1, 6)
    ]
    outage = Outage.objects.create(
        scope="pon", olt=olt, slot=1, port=3, cause="power", started_at=NOW, resumed_at=NOW, affected=5, down=5
    )
    for onu in onus:
        OnuReading.objects.create(onu=onu, run_state="offline", rx_power_cdbm=-2150, power_at=NOW, outage=outage)
        OnuCustomer.objects.create(onu=onu, label=f"Cliente {onu.onu_id}", address="Calle 1")
        OnuEvent.objects.create(olt=olt, pon_port=port, onu=onu, onu_number=onu.onu_id, at=NOW, kind="down")
    for minutes in range(0, 600, 5):
        append(
            NOW + timedelta(minutes=minutes),
            Samples.of([o.id for o in onus], [port.id] * 5, {RX_POWER: [-21.5 - n for n in range(5)]}),
        )

    node = WorkflowNode.objects.filter(workflow__olt=olt)[0]
    run = Execution.objects.create(
        olt=olt,
        node=node,
        task_type="get",
        status="SUCCESS",
        address=olt.address,
        port=161,
        token=1,
        created_at=NOW,
        finished_at=NOW,
        slot_at=NOW,
    )
    ExecutionAttempt.objects.create(execution=run, number=1, status="SUCCESS", started_at=NOW, finished_at=NOW)
    hour = {"olt": olt, "period_start": NOW, "period_end": NOW + timedelta(hours=1)}
    QuotaTracker.objects.create(task_type="get", quota_required=12, **hour)
    QuotaViolation.objects.create(severity="LOW", **hour)
    CoordinatorLog.objects.create(olt=olt, event_type="OLT_ENABLED", message="norte-1")
    channel = AlertChannel.objects.create(name="turno", shown_as="json://…", url=Secret("json://192.0.2.30"))
    rule = AlertRule.objects.create(name="turno", kind="weak_light")
    rule.channels.add(channel)
    alert = Alert.objects.create(rule=rule, subject="olt:1", olt=olt, state="firing", severity="critical", began_at=NOW)
    notice = Notice.objects.create(
        key="k", channel=channel, kind="opened", severity="critical", title="norte-1", created_at=NOW
    )
    notice.alerts.add(alert)
    switch(is_on=True)
    Trap.objects.create(olt=olt, onu=onus[0], pon_port=port, heard_at=NOW, oid="1.3.6.1.4.1.2011", meaning="onu_down")
    TrapSender.objects.create(address="192.0.2.66", reason="rate", count=3, first_heard_at=NOW, last_heard_at=NOW)


def show() -> dict[str, object]:
    """Return the rows of every table as texts, and what the product reads in them that no column shows plainly."""
    from django.db import connection

    from facho.hosts.models import Olt
    from facho.onus.history import Resolution, read_onu
    from facho.onus.models import Onu

    tables = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 the names are the database's own
            names = [column[0] for column in cursor.description]
            tables[table] = [dict(zip(names, map(_text, row), strict=True)) for row in cursor.fetchall()]
    light = {
        onu.serial: read_onu(onu.id, RX_POWER, EPOCH, FAR, Resolution.SAMPLES).average.tolist()
        for onu in Onu.objects.order_by("id")
    }
    communities = {olt.name: olt.community.reveal() for olt in Olt.objects.order_by("id")}
    return {"tables": tables, "understood": {"light": light, "communities": communities}}


def _text(value: object) -> str:
    return bytes(value).hex() if isinstance(value, (bytes, memoryview)) else str(value)


if __name__ == "__main__":
    open_product()
    if sys.argv[1] == "fill":
        from django.db.transaction import atomic

        with atomic():
            fill()
    else:
        json.dump(show(), sys.stdout)
