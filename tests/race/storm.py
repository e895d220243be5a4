"""The race storm: many OLTs with several masters each, all due at one instant, and schedulers that all take themselves
for the leader. What the database does not decide, nobody does.
"""

import math
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from crash.cell import held_by, pid_of
from crash.databases import load_states
from crash.devices import Devices, judge, simulated
from crash.engine_process import fork_engine, wait_until
from facho.executions.models import Execution
from facho.polling.domain.execution_state import TERMINAL, QueryType
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.scheduler import TICK_SECONDS
from factories import chain_to, make_job, make_node, make_olt
from slot_audit import audit_database, install_steps

INTERVAL_SECONDS = 3_600
# Long enough that several processes look at an OLT while one of them asks it.
DEVICES = {"vendor": "huawei_smartax", "onus": 8, "latency_ms": 15, "life": STILL}
COLUMNS = ("onu.description", "onu.run_state", "onu.last_down_cause", "onu.distance")
PATIENCE_SECONDS = 120.0
# Two ticks of every scheduler: who would start something twice, does it in that time.
SETTLE_SECONDS = 2.5


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Let it happen and return what was seen."""
    folder = Path(settings.DATA_FOLDER.path)
    looks = [folder / f"engine{n}.looks" for n in range(order["schedulers"])]
    engines = [fork_engine(look.stem, folder, equip=partial(_lead_always, look)) for look in looks]
    install_steps()
    with simulated(SimulatorConfig(**DEVICES, olts=order["olts"])) as devices:
        try:
            _add_olts(devices)
            for engine, look in zip(engines, looks, strict=True):
                engine.start()
                assert wait_until(look.exists), f"{engine.role} never looked"
                # Those that look at the same moment would leave every OLT to the quickest of them.
                wait_until(lambda: False, seconds=TICK_SECONDS / len(engines))
            slot_at = _make_due()
            wait_until(lambda: _count_ended() >= WorkflowNode.objects.count(), seconds=PATIENCE_SECONDS)
            took = time.time() - slot_at.timestamp()
            wait_until(lambda: False, seconds=SETTLE_SECONDS)
        finally:
            for engine in engines:
                engine.stop()
        seen = _findings(devices, slot_at)
    connections.close_all()
    return {"took_seconds": took, "logs": {engine.role: engine.problems() for engine in engines}, **seen}


def _lead_always(look: Path) -> None:
    """Take the leader's lease out of the way, so that it is not what keeps schedulers apart.

    Nor does one of them look again when a run of its own has ended: it would take the OLT before any other looks.
    The file appears when the scheduler looks for the first time.
    """
    from facho.zabbix_pollers.scheduler import ZabbixScheduler

    async def leads(_scheduler: ZabbixScheduler) -> bool:
        look.touch()  # noqa: ASYNC240 - a file that only this scene waits for
        return True

    def on_task_completed(_scheduler: ZabbixScheduler) -> None:
        """Wait for the next tick."""

    ZabbixScheduler.leads = leads  # type: ignore[method-assign]
    ZabbixScheduler.on_task_completed = on_task_completed  # type: ignore[method-assign]


def _add_olts(devices: Devices) -> None:
    jobs = [make_job(query_type=QueryType.DISCOVERY, columns=())]
    jobs += [make_job(query_type=QueryType.WALK, columns=(column,)) for column in COLUMNS]
    for simulated_olt in devices.olts:
        olt = make_olt(port=simulated_olt.port, vendor=simulated_olt.vendor)
        masters = [make_node(olt, job, next_run_at=None, interval_seconds=INTERVAL_SECONDS) for job in jobs]
        chain_to(masters[0])


def _make_due() -> datetime:
    """Have all masters due at one instant that is still ahead of every scheduler."""
    slot = math.ceil(time.time() + 1)
    slot_at = datetime.fromtimestamp(slot, UTC)
    masters = WorkflowNode.objects.filter(is_chain_node=False)
    masters.update(next_run_at=slot_at, offset_seconds=slot % INTERVAL_SECONDS)
    return slot_at


def _count_ended() -> int:
    return Execution.objects.filter(status__in=TERMINAL).count()


def _findings(devices: Devices, slot_at: datetime) -> dict[str, Any]:
    rows = list(Execution.objects.all())
    runs = Counter(row.node_id for row in rows)
    nodes = list(WorkflowNode.objects.all())
    verdict = judge(devices.packets, held_by(rows), answer_within=settings.FACHO_PACKET_TIMEOUT_SECONDS)
    return {
        "masters": sum(not node.is_chain_node for node in nodes),
        "lost": [node.id for node in nodes if not runs[node.id]],
        "unaccounted": audit_database().unaccounted,
        "doubled": [node_id for node_id, count in runs.items() if count > 1],
        "histories": sorted({" ".join(states) for states in load_states().values()}),
        "slots": sorted({str(row.slot_at and row.slot_at - slot_at) for row in rows}),
        "next_slots": sorted({str(node.next_run_at - slot_at) for node in nodes if node.next_run_at}),
        "max_in_flight": devices.max_in_flight,
        "packets": len(devices.packets),
        "overlaps": verdict.overlaps,
        "strays": verdict.strays,
        "runs_by_process": sorted(Counter(pid_of(row) for row in rows).values()),
    }
