"""A storm over schedules: engines on one database that are killed and frozen again and again, while people change what
is polled. Two stand by for each other, as those of two machines do, or several share the OLTs of one data folder. It
only brings things about and notes what it saw; the claims are the test's.
"""

import signal
import time
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from django.conf import settings
from django.db import OperationalError, connections
from django.utils import timezone

from crash.cell import held_by
from crash.devices import Devices, judge, simulated
from crash.engine_process import EngineProcess, fork_engine, wait_until
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.lease import WHOLE, Shard, all_shards
from facho.polling.domain.schedule import Grid
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.store import NodeChange, change_nodes, request_runs
from facho.zabbix_pollers.models import LeaderLease
from factories import chain_to, make_job, make_node, make_olt
from slot_audit import audit_database, install_steps

# Engines of two machines, as it were: who is killed is followed by the next of its own.
MACHINES = ("one", "two")
LIVES = 7
INTERVALS = (2, 3, 5)
HEALTHY = SimulatorConfig(vendor="huawei_smartax", olts=6, onus=40, latency_ms=400, life=STILL)
SILENT = SimulatorConfig(vendor="huawei_smartax", olts=1, onus=8, life=STILL, faults=Faults(is_silent=True))
PATIENCE_SECONDS = 60.0


class Machine:
    """One of the places where an engine runs; the dead one is followed by a new one."""

    def __init__(self, name: str, folder: Path, shard: Shard) -> None:
        self.name = name
        equip = partial(_live_in, folder / name) if shard.is_whole else partial(_share, shard.count)
        roles = [f"{name}{life}" for life in range(LIVES)]
        self._lives = [fork_engine(role, folder, equip=equip, shard=shard) for role in roles]
        self._number = 0

    @property
    def engine(self) -> EngineProcess:
        """The engine that lives here now."""
        return self._lives[self._number]

    @property
    def has_lives(self) -> bool:
        """Tell whether another engine can follow this one."""
        return self._number + 1 < LIVES

    def kill(self) -> None:
        """Let the engine die without a word, and the next one begin."""
        self.engine.signal(signal.SIGKILL)
        wait_until(lambda: self.engine.is_gone)
        self._number += 1
        self.engine.start()

    def stop_all(self) -> None:
        """End every engine, also those that never began."""
        for engine in self._lives:
            engine.stop()

    def problems(self) -> list[str]:
        """Return what went wrong in any life."""
        return [line for engine in self._lives for line in engine.problems() if "Error" in line][:10]


def _live_in(folder: Path) -> None:
    """Give the engine a data folder of its own: who finds its own folder's claims takes their owner for dead."""
    folder.mkdir(exist_ok=True)
    settings.DATA_FOLDER = replace(settings.DATA_FOLDER, path=folder)


def _share(count: int) -> None:
    """Let the engine count the others."""
    settings.FACHO_ENGINES = count


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Let it happen and return what was seen."""
    folder, luck = Path(settings.DATA_FOLDER.path), Random(order["seed"])  # noqa: S311 luck, not a secret
    if order["engines"] == 1:
        machines = [Machine(name, folder, WHOLE) for name in MACHINES]
    else:
        machines = [Machine(f"engine{shard.number}", folder, shard) for shard in all_shards(order["engines"])]
    install_steps()
    with simulated(HEALTHY, SILENT) as devices:
        try:
            _add_olts(devices)
            for machine in machines:
                machine.engine.start()
            wait_until(LeaderLease.objects.exists)
            kills, changes = _rage(machines, luck, order["seconds"])
            _let_it_end()
        finally:
            for machine in machines:
                machine.stop_all()
        seen = _findings(devices)
    connections.close_all()
    problems = [line for machine in machines for line in machine.problems()]
    return {"kills": kills, "changes": changes, "problems": problems, **seen}


def _add_olts(devices: Devices) -> None:
    discovery = make_job(query_type=QueryType.DISCOVERY, columns=())
    walk = make_job(query_type=QueryType.WALK, columns=("onu.run_state",))
    for number, simulated_olt in enumerate(devices.olts):
        olt = make_olt(port=simulated_olt.port, vendor=simulated_olt.vendor)
        seconds = INTERVALS[number % len(INTERVALS)]
        chain_to(make_node(olt, discovery, next_run_at=_soon(seconds), interval_seconds=seconds))
        make_node(olt, walk, next_run_at=_soon(seconds + 1), interval_seconds=seconds + 1)
    # Known already, so that nobody asks them who they are in between.
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
    SnmpJob.objects.update(retry_delay_seconds=1)


def _soon(interval_seconds: int) -> datetime:
    """Return a slot a few seconds from now."""
    return Grid(interval_seconds).next_after(timezone.now() + timedelta(seconds=3))


def _rage(machines: list[Machine], luck: Random, seconds: float) -> tuple[int, int]:
    """Kill, freeze and change things in turns; returns how often someone died, and how often people acted."""
    ends_at = time.monotonic() + seconds
    kills = changes = 0
    while time.monotonic() < ends_at:
        victim = luck.choice(machines)
        if luck.random() < 0.2:
            victim.engine.signal(signal.SIGSTOP)
            _pass(settings.FACHO_LEASE_SECONDS + 1.5)
            victim.engine.signal(signal.SIGCONT)
        elif victim.has_lives:
            victim.kill()
            kills += 1
        for _ in range(4):
            _pass(luck.uniform(0.2, 0.8))
            changes += _change_something(luck)
    return kills, changes


def _pass(seconds: float) -> None:
    wait_until(lambda: False, seconds=seconds)


def _change_something(luck: Random) -> bool:
    """Do what people do; False when the database was busy for too long."""
    nodes, now = WorkflowNode.objects.filter(is_chain_node=False), timezone.now()
    node = luck.choice(list(nodes))
    one, olt = nodes.filter(id=node.id), node.workflow.olt
    try:
        match luck.randrange(6):
            case 0 | 1:
                change_nodes(one, NodeChange(enabled=not node.enabled), now=now)
            case 2:
                request_runs(one, now=now)
            case 3:
                change_nodes(one, NodeChange(interval_seconds=luck.choice((2, 3, 4, 5, 7))), now=now)
            case 4:
                Olt.objects.filter(id=olt.id).update(enabled=not olt.enabled)
            case _:
                pause(olt, minutes=luck.uniform(0.02, 0.1), note="", now=now)  # type: ignore[arg-type]
    except OperationalError:
        return False
    return True


def _let_it_end() -> None:
    """Enable nothing more, and let everything that was begun come to its end and be reported."""
    change_nodes(WorkflowNode.objects.filter(is_chain_node=False), NodeChange(enabled=False), now=timezone.now())
    Olt.objects.update(enabled=True)

    def has_ended() -> bool:
        is_planned = WorkflowNode.objects.exclude(next_run_at=None).exists()
        return not is_planned and not Execution.objects.filter(finished_at=None).exists()

    wait_until(has_ended, seconds=PATIENCE_SECONDS)
    wait_until(lambda: not audit_database().unaccounted, seconds=PATIENCE_SECONDS / 3)


def _findings(devices: Devices) -> dict[str, Any]:
    rows, found = list(Execution.objects.all()), audit_database()
    verdict = judge(devices.packets, held_by(rows), answer_within=settings.FACHO_PACKET_TIMEOUT_SECONDS)
    return {
        "executions": len(rows),
        "unfinished": sum(row.finished_at is None for row in rows),
        "interrupted": sum(row.status == ExecutionState.INTERRUPTED for row in rows),
        "owed": found.owed,
        "fates": dict(found.fates),
        "unaccounted": found.unaccounted,
        "doubled": len(found.started_twice) + found.without_slot,
        # Which pollers, and so which engines, each OLT had.
        "servants": sorted({(row.olt_id, row.poller_id) for row in rows if row.poller_id is not None}),
        "overlaps": verdict.overlaps[:5],
        "max_in_flight": devices.max_in_flight,
    }
