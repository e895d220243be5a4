"""Every way a run can end, on a real engine: what became of each slot, and what the device saw of it."""

import math
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone

from crash.cell import held_by
from crash.databases import load_states
from crash.devices import Devices, judge, simulated
from crash.engine_process import PATIENCE_SECONDS, EngineProcess, fork_engine, wait_until
from facho.execution_coordinator.logger import log_executions
from facho.execution_coordinator.models import OltState
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.lease import WHOLE
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import SkippedSlot, SnmpJob, WorkflowNode
from facho.zabbix_pollers.models import LeaderLease
from factories import give_secrets, make_job, make_node, make_olt
from slot_audit import audit_database, install_steps

INTERVAL_SECONDS = 5
SLOTS = 4
# One more than it takes to suspend a node.
ENGINES_IN_THE_LOOP = 4
HEALTHY = {"vendor": "huawei_smartax", "onus": 60, "life": STILL}
SLOW = {**HEALTHY, "onus": 200, "latency_ms": 150}

Meddle = Callable[[list[EngineProcess], list[WorkflowNode]], None]


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Poll one OLT for some slots while the outcome's trouble lasts."""
    config, prepare, meddle, is_over = OUTCOMES[order["outcome"]]
    folder = Path(settings.DATA_FOLDER.path)
    is_loop = order["outcome"] == "crash loop"
    equip = _die_in_mid_walk if is_loop else _nothing
    roles = [f"{order['outcome']} {number}" for number in range(ENGINES_IN_THE_LOOP if is_loop else 1)]
    engines = [fork_engine(role.replace(" ", "-"), folder, equip=equip, shard=WHOLE) for role in roles]
    with simulated(config) as devices:
        try:
            engines[0].start()
            # A slot counts from the moment on when somebody could serve it. A node without one would be given its own.
            wait_until(LeaderLease.objects.exists)
            with transaction.atomic():
                slot_at, nodes = _add_nodes(devices)
                prepare()
            install_steps()
            meddle(engines, nodes)
            end_at = slot_at.timestamp() + SLOTS * INTERVAL_SECONDS - 0.5
            wait_until(lambda: time.time() > end_at and is_over(), seconds=SLOTS * INTERVAL_SECONDS + PATIENCE_SECONDS)
        finally:
            for engine in engines:
                engine.stop()
        seen = _findings(devices, slot_at, nodes)
    connections.close_all()
    return {**seen, "logs": {engine.role: engine.problems() for engine in engines}}


def _nothing(*_: object) -> None:
    """Leave everything as it is."""


def _always() -> bool:
    """Be over with the last slot."""
    return True


def _is_suspended() -> bool:
    """Be over when no node is tried any more, however many slots the machine was late for."""
    return not WorkflowNode.objects.filter(enabled=True, suspend_reason="").exists()


def _add_nodes(devices: Devices) -> tuple[datetime, list[WorkflowNode]]:
    """Add a discovery, and behind it in the queue of the same OLT a walk; return their first slot with them."""
    [simulated_olt] = devices.olts
    olt = make_olt(port=simulated_olt.port, vendor=simulated_olt.vendor)
    # Known already, so that nobody asks it who it is in between.
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
    jobs = [
        make_job(query_type=QueryType.DISCOVERY, columns=()),
        make_job(query_type=QueryType.WALK, columns=("onu.run_state",)),
    ]
    slot = math.ceil(time.time() + 1)
    slot_at = datetime.fromtimestamp(slot, UTC)
    # Moved apart already, so that no grid moves in between.
    OltState.objects.create(olt=olt, saved_at=slot_at, packed_at=slot_at)
    grid = {"interval_seconds": INTERVAL_SECONDS, "offset_seconds": slot % INTERVAL_SECONDS}
    return slot_at, [make_node(olt, job, next_run_at=slot_at, **grid) for job in jobs]


def _set_wrong_community() -> None:
    give_secrets(community="wrong")


def _retry_soon() -> None:
    SnmpJob.objects.update(retry_delay_seconds=1)


def _keep_only_discovery() -> None:
    WorkflowNode.objects.exclude(job__query_type=QueryType.DISCOVERY).update(enabled=False)


def _is_running(node: WorkflowNode) -> bool:
    return Execution.objects.filter(node=node, status=ExecutionState.RUNNING).exists()


def _disable_queued_node(engines: list[EngineProcess], nodes: list[WorkflowNode]) -> None:
    discovery, queued = nodes
    wait_until(lambda: _is_running(discovery))
    WorkflowNode.objects.filter(id=queued.id).update(enabled=False)


def _disable_olt_in_mid_run(engines: list[EngineProcess], nodes: list[WorkflowNode]) -> None:
    wait_until(lambda: _is_running(nodes[0]))
    Olt.objects.update(enabled=False)


def _restart_at_once(engines: list[EngineProcess], nodes: list[WorkflowNode]) -> None:
    for engine, following in pairwise(engines):
        wait_until(partial(_has_ended, engine), seconds=SLOTS * INTERVAL_SECONDS)
        following.start()


def _has_ended(engine: EngineProcess) -> bool:
    return engine.is_gone


def _die_in_mid_walk() -> None:
    """Kill this engine at the third packet of every run."""
    from facho.executions.runner import Claim

    check, calls = Claim.check, [0]

    def check_or_die(claim: Claim) -> None:
        calls[0] += 1
        if calls[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        check(claim)

    Claim.check = check_or_die  # type: ignore[method-assign]


OUTCOMES: dict[str, tuple[SimulatorConfig, Callable[[], None], Meddle, Callable[[], bool]]] = {
    "success": (SimulatorConfig(**HEALTHY), _nothing, _nothing, _always),
    "dead olt": (SimulatorConfig(**HEALTHY, faults=Faults(is_silent=True)), _nothing, _nothing, _is_suspended),
    "dead olt, retried": (
        SimulatorConfig(**HEALTHY, faults=Faults(is_silent=True)),
        _retry_soon,
        _nothing,
        _is_suspended,
    ),
    "wrong community": (SimulatorConfig(**HEALTHY), _set_wrong_community, _nothing, _is_suspended),
    "no onus": (SimulatorConfig(**{**HEALTHY, "onus": 0}), _nothing, _nothing, _always),
    "node disabled while queued": (SimulatorConfig(**SLOW), _nothing, _disable_queued_node, _always),
    "olt disabled in mid-run": (SimulatorConfig(**SLOW), _nothing, _disable_olt_in_mid_run, _always),
    "crash loop": (SimulatorConfig(**HEALTHY), _keep_only_discovery, _restart_at_once, _is_suspended),
}


def _findings(devices: Devices, slot_at: datetime, nodes: list[WorkflowNode]) -> dict[str, Any]:
    rows = list(Execution.objects.order_by("id"))
    states = load_states()
    numbers = {node.id: number for number, node in enumerate(nodes)}
    verdict = judge(devices.packets, held_by(rows), answer_within=settings.FACHO_PACKET_TIMEOUT_SECONDS)
    # What ended with the engine is reported by the next one.
    log_executions(None, timezone.now())
    return {
        "unaccounted": audit_database().unaccounted,
        "runs": [
            {
                "node": numbers.get(row.node_id),
                "slot": row.slot_at and _slot(row.slot_at, slot_at),
                "states": states[row.id],
                "attempt": row.attempt,
                "failure": row.failure_kind,
                "seconds": row.finished_at and row.started_at and (row.finished_at - row.started_at).total_seconds(),
            }
            for row in rows
        ],
        "skipped": [
            (numbers[node_id], _slot(skipped_at, slot_at))
            for node_id, skipped_at in SkippedSlot.objects.values_list("node_id", "slot_at")
        ],
        "suspended": list(WorkflowNode.objects.order_by("id").values_list("suspend_reason", flat=True)),
        "max_in_flight": devices.max_in_flight,
        "overlaps": verdict.overlaps,
        "strays": verdict.strays,
    }


def _slot(at: datetime, first_at: datetime) -> float:
    return (at - first_at).total_seconds() / INTERVAL_SECONDS
