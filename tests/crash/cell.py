"""One cell of the crash matrix: a victim and a survivor on one database, one OLT, one fault at one point.

The scene only brings it about and notes what it saw; the claims are the test's.
"""

import math
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from crash.ambush import Ambush, Fault, Point, Verdict, lay
from crash.databases import load_states
from crash.devices import Devices, Held, judge, simulated
from crash.engine_process import EngineProcess, fork_engine, wait_until
from facho.execution_coordinator.logger import log_executions
from facho.executions.models import Execution, ExecutionAttempt
from facho.onus.models import Onu
from facho.polling.domain.execution_state import ACTIVE, ExecutionState, QueryType
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from factories import chain_to, make_job, make_node, make_olt
from slot_audit import audit_database, install_steps

LEASE_SECONDS = 2.0
PACKET_SECONDS = 0.5
INTERVAL_SECONDS = 7
# A master of about a second, so that a lease of two seconds is renewed within it.
DEVICE = SimulatorConfig(vendor="huawei_smartax", onus=200, latency_ms=120, life=STILL)
# Shorter than the product's, so that the test need not hold the lock for so long.
VICTIM_BUSY_SECONDS = 1.0
LOCKED_SECONDS = 1.6
BEYOND_LEASE_SECONDS = 1.0
PATIENCE_SECONDS = 40


class Watch:
    """Looks at the execution that held the OLT when the fault came, until someone alive has it or it is over."""

    def __init__(self) -> None:
        self._began_at = time.monotonic()
        self._row = self._load()
        self.free_after: float | None = None

    def is_free(self) -> bool:
        """Tell whether the hold has ended or gone on; notes when that was first seen."""
        if self.free_after is None and (self._row is None or self._load() != self._row):
            self.free_after = time.monotonic() - self._began_at
        return self.free_after is not None

    def look_for(self, seconds: float) -> None:
        """Let time pass, watching."""
        wait_until(lambda: not self.is_free() and False, seconds=seconds)

    def _load(self) -> tuple[int, str, int] | None:
        return Execution.objects.filter(status__in=ACTIVE).values_list("id", "status", "lease_counter").first()


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Bring the fault about and return what was seen."""
    point, fault, ambush = Point(order["point"]), Fault(order["fault"]), Ambush()
    folder = Path(settings.DATA_FOLDER.path)
    victim = fork_engine("victim", folder, equip=partial(_equip, point, ambush))
    survivor = fork_engine("survivor", folder)
    engines = (victim, survivor)
    install_steps()
    with simulated(DEVICE) as devices:
        try:
            master = _add_olt(devices)
            _start(victim, survivor)
            slot_at = _make_due(master)
            free_after = _strike(point, fault, ambush, victim)
            is_served = wait_until(lambda: _is_served(slot_at), seconds=PATIENCE_SECONDS)
        finally:
            for engine in engines:
                engine.stop()
        seen = _findings(devices, slot_at, engines)
    connections.close_all()
    return {"free_after": free_after, "is_served": is_served, **seen}


def _equip(point: Point, ambush: Ambush) -> None:
    if connection.vendor == "sqlite":
        settings.DATABASES["default"]["OPTIONS"]["timeout"] = VICTIM_BUSY_SECONDS
    lay(point, ambush)


def _add_olt(devices: Devices) -> WorkflowNode:
    [olt] = devices.olts
    discovery = make_job(query_type=QueryType.DISCOVERY, columns=())
    row = make_olt(port=olt.port, vendor=olt.vendor)
    master = make_node(row, discovery, next_run_at=None, interval_seconds=INTERVAL_SECONDS)
    chain_to(master)
    return master


def _start(victim: EngineProcess, survivor: EngineProcess) -> None:
    """Let the victim lead before the survivor looks."""
    victim.start()
    _require(wait_until(LeaderLease.objects.exists), "the victim leads")
    survivor.start()


def _make_due(master: WorkflowNode) -> datetime:
    slot = math.ceil(time.time() + 0.2)
    slot_at = datetime.fromtimestamp(slot, UTC)
    WorkflowNode.objects.filter(id=master.id).update(next_run_at=slot_at, offset_seconds=slot % INTERVAL_SECONDS)
    return slot_at


def _strike(point: Point, fault: Fault, ambush: Ambush, victim: EngineProcess) -> float | None:
    """Do it, and return after how many seconds the OLT was free or in living hands."""
    _require(ambush.wait(), f"the victim reaches: {point}")
    watch = Watch()
    if fault is Fault.KILL:
        victim.signal(signal.SIGKILL)
    elif fault is Fault.EXCEPTION:
        ambush.decide(Verdict.RAISE)
    elif fault is Fault.STOP:
        _stop_and_continue(point, ambush, victim, watch)
    else:
        _lose_database(point, ambush, watch)
    wait_until(watch.is_free, seconds=PATIENCE_SECONDS)
    return watch.free_after


def _stop_and_continue(point: Point, ambush: Ambush, victim: EngineProcess, watch: Watch) -> None:
    """Keep the victim stopped until others have taken its OLT, and longer than its lease."""
    victim.signal(signal.SIGSTOP)
    _require(wait_until(lambda: victim.state == "T"), "the victim is stopped")
    watch.look_for(LEASE_SECONDS + PACKET_SECONDS + BEYOND_LEASE_SECONDS)
    if not (point is Point.INSIDE_STORE and connection.vendor == "sqlite"):
        wait_until(watch.is_free, seconds=PATIENCE_SECONDS)
    ambush.decide(Verdict.GO_ON)
    victim.signal(signal.SIGCONT)


def _lose_database(point: Point, ambush: Ambush, watch: Watch) -> None:
    """End the victim's connections; with a file, let it be locked by someone else, or be refused in mid-write."""
    if connection.vendor == "postgresql":
        _end_connections(of="victim")
        ambush.decide(Verdict.GO_ON)
    elif point is Point.INSIDE_STORE:
        ambush.decide(Verdict.WRITES_FAIL)
    else:
        other = sqlite3.connect(settings.DATABASES["default"]["NAME"], isolation_level=None, timeout=5)
        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            ambush.decide(Verdict.GO_ON)
            watch.look_for(LOCKED_SECONDS)
            other.execute("ROLLBACK")


def _end_connections(*, of: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = %s",
            [of],
        )
        _require(cursor.rowcount, "the victim had connections")


def _is_served(slot_at: datetime) -> bool:
    """Tell whether master and chain of a later slot ended well."""
    later = Execution.objects.filter(slot_at__gt=slot_at, chain_position=1)
    return later.filter(status=ExecutionState.SUCCESS).exists()


def _findings(devices: Devices, slot_at: datetime, engines: tuple[EngineProcess, ...]) -> dict[str, Any]:
    roles = {str(engine.pid): engine.role for engine in engines}
    rows = list(Execution.objects.order_by("id"))
    verdict = judge(devices.packets, held_by(rows), answer_within=PACKET_SECONDS)
    states = load_states()
    # These engines have no coordinator: the next one that has tells what they broke off.
    log_executions(None, timezone.now())
    return {
        "unaccounted": audit_database().unaccounted,
        "executions": [
            {
                "slot": (row.slot_at - slot_at).total_seconds() if row.slot_at else None,
                "position": row.chain_position,
                "ended": row.finished_at and (row.finished_at - slot_at).total_seconds(),
                "states": states[row.id],
                "error": row.error,
                "by": roles.get(str(pid_of(row))),
            }
            for row in rows
        ],
        "strays": verdict.strays,
        "overlaps": verdict.overlaps,
        "max_in_flight": devices.max_in_flight,
        "packets": {roles.get(str(pid), str(pid)): n for pid, n in devices.count_by_process().items()},
        "busy_pollers": Poller.objects.filter(status=PollerStatus.BUSY).count(),
        "stored_by_nobody": _stored_by_nobody(rows),
        "interval": INTERVAL_SECONDS,
        "next_slot": _next_slot(slot_at),
        "logs": {engine.role: engine.problems() for engine in engines},
    }


def held_by(rows: Sequence[Execution]) -> list[Held]:
    """Return when which process held which device; each try is a turn of its own."""
    known = {row.id: row for row in rows}
    return [
        Held(
            turn=f"{attempt.execution_id}.{attempt.number}",
            port=known[attempt.execution_id].port,
            pid=pid_of(known[attempt.execution_id]),
            since=attempt.started_at.timestamp(),
            until=attempt.finished_at.timestamp() if attempt.finished_at else None,
        )
        for attempt in ExecutionAttempt.objects.filter(execution__in=known)
    ]


def pid_of(row: Execution) -> int:
    """Return the process that owns or owned an execution; 0 when none ever did."""
    return int(row.owner.split("/")[-2]) if row.owner else 0


def _stored_by_nobody(rows: Sequence[Execution]) -> int:
    """Count ONUs that were stored at another moment than the end of a run: a late result."""
    return Onu.objects.exclude(first_seen_at__in=[row.finished_at for row in rows if row.finished_at]).count()


def _next_slot(slot_at: datetime) -> float | None:
    """Return when the master runs next, in intervals after its first slot."""
    next_run_at = WorkflowNode.objects.get(is_chain_node=False).next_run_at
    return next_run_at and (next_run_at - slot_at).total_seconds() / INTERVAL_SECONDS


def _require(is_true: object, what: str) -> None:
    if not is_true:
        raise TimeoutError(f"not in time: {what}")
