"""Gives the OLTs of a filled database jobs and a past: runs, quotas, violations, events and outages of a day.

Its models can be imported only when Django is set up.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.timezone import localtime

from bench.history_values import samples_of
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.executions.models import Execution
from facho.hosts.models import Olt, WaitingOnu
from facho.onus.history import PORTS_PER_GROUP_BITS, Samples, append
from facho.onus.models import Onu, OnuEvent, Outage, PonPort
from facho.plant.models import (
    AttachmentSources,
    Box,
    BoxKinds,
    FindingKinds,
    FindingOnu,
    LightFinding,
    MonthRun,
    OnuAttachment,
    OnuMonth,
    Zone,
)
from facho.polling.domain.schedule import hour_of
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode

VENDOR = "huawei_smartax"
RUNS_EVERY = timedelta(minutes=3)
FAILED_EVERY = 50
VIOLATED_HOURS = 8
OUTAGES_OF_AN_OLT = 6
WAITING_OF_AN_OLT = 3
AT_ONCE = 2_000
# A day of polls every 30 seconds that no compaction has touched.
WAITING_SECONDS, WAITING_POLLS = 30, 2_880
ZONES, ONUS_OF_A_BOX = 40, 8


def give_past(now: datetime) -> None:
    """Make what a day of polling leaves behind, on every OLT that is there."""
    olts = list(Olt.objects.only("id", "name", "address", "port", "vendor").order_by("id"))
    for olt in olts:
        olt.vendor = VENDOR
        olt.save(update_fields=["vendor"])
        apply_ready_made_jobs(olt, now=now)
    Execution.objects.bulk_create(_runs(olts, now), batch_size=AT_ONCE)
    QuotaTracker.objects.bulk_create(_trackers(olts, now), batch_size=AT_ONCE)
    QuotaViolation.objects.bulk_create(_violations(olts, now), batch_size=AT_ONCE)
    OnuEvent.objects.bulk_create(_events(now), batch_size=AT_ONCE)
    Outage.objects.bulk_create(_outages(olts, now), batch_size=AT_ONCE)
    WaitingOnu.objects.bulk_create(_waiting(olts, now), batch_size=AT_ONCE)
    _give_plant(now)
    # One node is due while others are not: the overview then asks for the queue and for what comes after it.
    due = WorkflowNode.objects.filter(next_run_at__isnull=False).order_by("id").values("id")[:1]
    WorkflowNode.objects.filter(id__in=due).update(next_run_at=now)


def _give_plant(now: datetime) -> None:
    """Put each port on a splitter with a box for eight ONUs, and give it a loss in common, decays, and a month."""
    ports = list(PonPort.objects.order_by("id"))
    zones = [Zone(name=f"zone {number}", latitude=4.0 + number / 50, longitude=-74.0) for number in range(ZONES)]
    Zone.objects.bulk_create(zones)
    splitters = [Box(name=f"splitter {port.id}", kind=BoxKinds.SPLITTER, **_about(port, zones)) for port in ports]
    Box.objects.bulk_create(splitters, batch_size=AT_ONCE)
    feeding = dict(zip((port.id for port in ports), splitters, strict=True))
    onus = list(Onu.objects.order_by("id").values_list("id", "pon_port_id", "olt_id", "onu_id"))
    places = sorted({(port_id, number // ONUS_OF_A_BOX) for _, port_id, _, number in onus})
    by_id = {port.id: port for port in ports}
    boxes = {
        (port_id, row): Box(
            name=f"box {port_id} {row}", outputs=16, parent=feeding[port_id], **_about(by_id[port_id], zones, row + 1)
        )
        for port_id, row in places
    }
    Box.objects.bulk_create(boxes.values(), batch_size=AT_ONCE)
    attached = (
        OnuAttachment(onu_id=onu_id, box=boxes[port_id, number // ONUS_OF_A_BOX], source=AttachmentSources.IMPORT)
        for onu_id, port_id, _, number in onus
    )
    OnuAttachment.objects.bulk_create(attached, batch_size=AT_ONCE)
    steps = [
        LightFinding(
            kind=FindingKinds.COMMON_STEP, pon_port=port, since=now - timedelta(hours=port.id % 700), found_at=now,
            judged_at=now, size_db=-3.0, confidence=0.9, onus_read=64,
        )
        for port in ports
    ]  # fmt: skip
    LightFinding.objects.bulk_create(steps, batch_size=AT_ONCE)
    step_of = {step.pon_port_id: step for step in steps}
    hit = (
        FindingOnu(finding=step_of[port_id], onu_id=onu_id, is_hit=number < ONUS_OF_A_BOX, size_db=-3.0)
        for onu_id, port_id, _, number in onus
    )
    FindingOnu.objects.bulk_create(hit, batch_size=AT_ONCE)
    decays = (
        LightFinding(
            kind=FindingKinds.DECAY, pon_port_id=port_id, onu_id=onu_id, since=now - timedelta(days=9), found_at=now,
            judged_at=now, size_db=0.1, days_soonest=9.0, days_likely=11.0, days_latest=14.0, level_dbm=-26.0,
        )
        for onu_id, port_id, _, number in onus
        if number == ONUS_OF_A_BOX
    )  # fmt: skip
    LightFinding.objects.bulk_create(decays, batch_size=AT_ONCE)
    month = localtime(now).date().replace(day=1)
    MonthRun.objects.create(month=month, covers_until=now, finished_at=now)
    figures = (
        OnuMonth(
            month=month, onu_id=onu_id, pon_port_id=port_id, olt_id=olt_id, up_seconds=86_400 - onu_id % 977,
            down_seconds=onu_id % 977, unknown_seconds=0, planned_seconds=0, interruptions=onu_id % 5,
            longest_down_seconds=onu_id % 977, light_cdbm=-1_800 - onu_id % 1_000, lowest_day_cdbm=-2_800,
        )
        for onu_id, port_id, olt_id, _ in onus
    )  # fmt: skip
    OnuMonth.objects.bulk_create(figures, batch_size=AT_ONCE)


def _about(port: PonPort, zones: Sequence[Zone], row: int = 0) -> dict[str, Any]:
    """The zone, the port and a place for the splitter of a port, or one of its boxes."""
    spot = {"latitude": 4.0 + port.id % 40 / 50 + row / 2_000, "longitude": -74.0 + port.id // 40 / 50}
    return {"zone": zones[port.id % len(zones)], "pon_port": port, **spot}


def _runs(olts: Sequence[Olt], now: datetime) -> Iterator[Execution]:
    nodes = defaultdict(list)
    for node_id, olt_id in WorkflowNode.objects.order_by("id").values_list("id", "workflow__olt_id"):
        nodes[olt_id].append(node_id)
    for olt in olts:
        for number in range(timedelta(days=1) // RUNS_EVERY):
            at, failed = now - RUNS_EVERY * (number + 1), number % FAILED_EVERY == 0
            yield Execution(
                olt=olt,
                node_id=nodes[olt.id][number % len(nodes[olt.id])],
                task_type="descubrimiento",
                status="FAILED" if failed else "SUCCESS",
                failure_kind="timeout" if failed else "",
                slot_at=at,
                address=olt.address,
                port=olt.port,
                token=number + 1,
                created_at=at,
                started_at=at,
                finished_at=at + timedelta(seconds=4),
                duration_ms=4_000,
                result={"rows": 1_000, "packets": 40},
            )


def _trackers(olts: Sequence[Olt], now: datetime) -> Iterator[QuotaTracker]:
    hour = hour_of(now)
    for olt in olts:
        for kind in ("descubrimiento", "estado", "potencias"):
            yield QuotaTracker(
                olt=olt,
                task_type=kind,
                period_start=hour.start,
                period_end=hour.end,
                quota_required=12,
                quota_completed=7,
            )


def _violations(olts: Sequence[Olt], now: datetime) -> Iterator[QuotaViolation]:
    hour = hour_of(now)
    for olt in olts:
        for hours in range(1, VIOLATED_HOURS + 1):
            ago = timedelta(hours=hours)
            yield QuotaViolation(olt=olt, period_start=hour.start - ago, period_end=hour.end - ago, severity="WARNING")


def _events(now: datetime) -> Iterator[OnuEvent]:
    onus = Onu.objects.order_by("id").values_list("id", "olt_id", "pon_port_id", "onu_id")
    for onu_id, olt_id, port_id, number in onus.iterator():
        kind = ("down", "up", "power_drop")[onu_id % 3]
        yield OnuEvent(
            onu_id=onu_id,
            olt_id=olt_id,
            pon_port_id=port_id,
            onu_number=number,
            at=now - timedelta(seconds=onu_id * 2_654_435_761 % 86_400),
            kind=kind,
            cause="dying_gasp" if kind == "down" else "",
        )


def _outages(olts: Sequence[Olt], now: datetime) -> Iterator[Outage]:
    for olt in olts:
        for number in range(OUTAGES_OF_AN_OLT):
            start = now - timedelta(hours=number + 1)
            yield Outage(
                scope="pon",
                olt=olt,
                slot=1,
                port=number,
                cause="fibre",
                started_at=start,
                resumed_at=start,
                ended_at=start + timedelta(minutes=20) if number else None,
                affected=64,
                down=60,
            )


def _waiting(olts: Sequence[Olt], now: datetime) -> Iterator[WaitingOnu]:
    for olt in olts:
        for port in range(WAITING_OF_AN_OLT):
            serial = f"HWTC{olt.id:04}{port:04}"
            yield WaitingOnu(olt=olt, frame=0, slot=1, port=port, serial=serial, first_seen_at=now, last_seen_at=now)


def give_waiting_polls(now: datetime) -> None:
    """Let the ports around the first ONU have been polled every 30 seconds for a day, and nothing be compacted."""
    first = Onu.objects.order_by("id").values_list("pon_port_id", flat=True)[0]
    group = first >> PORTS_PER_GROUP_BITS
    ports = range(group << PORTS_PER_GROUP_BITS, (group + 1) << PORTS_PER_GROUP_BITS)
    places = list(Onu.objects.filter(pon_port_id__in=ports).order_by("id").values_list("id", "pon_port_id"))
    ids, port_ids = (np.array(column, dtype=np.int64) for column in zip(*places, strict=True))
    start = int(now.timestamp()) - WAITING_POLLS * WAITING_SECONDS
    at = np.arange(start, start + WAITING_POLLS * WAITING_SECONDS, WAITING_SECONDS, dtype=np.int64)
    values = samples_of(len(places), at, seed=1)
    for number, second in enumerate(at.tolist()):
        columns = {int(metric): column[:, number].copy() for metric, column in values.items()}
        with transaction.atomic():
            append(datetime.fromtimestamp(second, UTC), Samples(ids, port_ids, columns))
