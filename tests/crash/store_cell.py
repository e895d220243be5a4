"""Kills a run at each moment of its finishing transaction, one try after the other, until it is stored.

A moment is before a statement, before the commit or after it. Each try is a process of its own, forked beforehand and
killed with -9; what follows is what a scheduler does with the dead. The claims are the test's.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np
from django.db import connection, connections

from crash.ambush import Ambush
from crash.devices import simulated
from crash.engine_process import wait_until
from facho.core.wiring import ENGINE, open_parts
from facho.executions import runner
from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.store import load_active, load_unfinished
from facho.hosts.models import Olt
from facho.onus.history import Resolution, read_onu
from facho.onus.history_models import HistoryPoll, Metric
from facho.onus.models import OltMemory, Onu, OnuData, OnuEvent, OnuReading, Outage, PonPort
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.planning import Assignment
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL, Chassis, OltWorld
from facho.snmp_get.collector import OltCollector
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.store import claim_assignments, end_dead_tries, save_poller_count
from factories import make_job, make_node, make_olt
from servers.child import end_with_parent

# More than a finishing transaction has statements.
MOST_MOMENTS = 80
DEVICE = SimulatorConfig(
    vendor="huawei_smartax", onus=40, offline_share=0.0, life=STILL, chassis=Chassis(2, 4, 4), waiting=0
)
COLUMNS = ("onu.description", "onu.run_state", "onu.last_down_cause", "onu.distance", "onu.rx_power")
# Where a run leaves what it read.
STORED = (PonPort, Onu, OnuReading, OnuEvent, OnuData, Outage, OltMemory, HistoryPoll)
A_WHILE = timedelta(seconds=10)
FAR = timedelta(days=1)

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Victim:
    """A forked process that carries out one run and meets its ambush at one moment of the store."""

    pid: int
    orders: int
    ambush: Ambush

    def send(self, execution_id: int, token: int) -> None:
        """Let it run."""
        os.write(self.orders, f"{execution_id} {token}".encode())

    def kill(self) -> None:
        """End it without a word."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Kill the run of this order's job at every moment and return what was seen."""
    victims = [_fork_victim(moment) for moment in range(1, MOST_MOMENTS + 1)]
    with simulated(DEVICE) as devices:
        [device] = devices.olts
        save_poller_count(1)
        olt = make_olt(port=device.port, vendor=device.vendor)
        nodes = {
            "inventory": _node(olt, QueryType.DISCOVERY, ()),
            "readings": _node(olt, QueryType.WALK, COLUMNS),
        }
        for node in nodes.values():
            _poll_undisturbed(node)
        _HAPPENINGS[order["job"]](device.world)
        seen = _kill_until_stored(nodes[order["job"]], victims)
        _poll_undisturbed(nodes[order["job"]])
        seen |= _findings(olt)
    connections.close_all()
    return seen


def _kill_until_stored(node: WorkflowNode, victims: list[Victim]) -> dict[str, Any]:
    before, torn, left = _rows(), [], iter(victims)
    _make_due(node)
    for killed, victim in enumerate(left, start=1):
        execution_id, token = _claim()
        victim.send(execution_id, token)
        if victim.ambush.wait() is None:
            raise TimeoutError(f"not in time: the victim reaches moment {killed}")
        victim.kill()
        after = _rows()
        run = Execution.objects.get(id=execution_id)
        if run.status == ExecutionState.SUCCESS:
            break
        torn += [f"{killed}: {table}" for table in before if after[table] != before[table]]
        torn += [f"{killed}: {run.status}"] if run.status != ExecutionState.RUNNING else []
        if not wait_until(lambda: end_dead_tries(load_active(), reason="killed", now=_now()) == 1):
            raise TimeoutError("not in time: the dead try is ended")
    for victim in left:
        victim.kill()
    return {
        "killed": killed,
        "torn": torn,
        "status": run.status,
        "attempts": list(
            ExecutionAttempt.objects.filter(execution=run).order_by("number").values_list("status", flat=True)
        ),
        "changed": sorted(table for table in before if after[table] != before[table]),
        "stored_at_its_end": _stored_at(run.finished_at),
    }


def _stored_at(moment: datetime | None) -> dict[str, int]:
    """Count what says of itself that it was stored at the end of the run."""
    return {
        "events": OnuEvent.objects.filter(at=moment).count(),
        "values": OnuData.objects.filter(updated_at=moment).count(),
        "blocks": HistoryPoll.objects.filter(taken_at=moment).count(),
        "outages": Outage.objects.filter(started_at=moment).count(),
    }


def _findings(olt: Olt) -> dict[str, Any]:
    """Tell what stands there after one more run, which found nothing new."""
    walks = Execution.objects.filter(task_type__startswith="walk", status=ExecutionState.SUCCESS)
    # History has one place for each second, and two runs may end in the same one.
    reads = len(
        {ended_at.replace(microsecond=0) for ended_at in walks.values_list("finished_at", flat=True) if ended_at}
    )
    whole = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    here = Onu.objects.filter(olt=olt, is_present=True).values_list("id", flat=True)
    series = [read_onu(onu_id, Metric.STATE, *whole, Resolution.SAMPLES) for onu_id in here]
    return {
        "last": Execution.objects.latest("id").status,
        "events": dict(Counter(OnuEvent.objects.values_list("kind", flat=True))),
        "outages": list(Outage.objects.values_list("scope", "affected", "ended_at")),
        "reads": reads,
        "samples": sorted({int(np.isfinite(one.average).sum()) for one in series}),
        "busy_pollers": Poller.objects.filter(status=PollerStatus.BUSY).count(),
        "active": len(load_active()),
    }


def _happen_to_places(world: OltWorld) -> None:
    first, second, third, *_ = (port.place for port in world.ports.values() if port.onus)
    world.move(next(iter(world.ports[first].onus.values())), second)
    world.replace(next(iter(world.ports[second].onus.values())))
    world.add(third)


def _happen_to_light(world: OltWorld) -> None:
    first, second, *_ = (port.place for port in world.ports.values() if port.onus)
    world.cut(first)
    bent, named, *_ = world.ports[second].onus.values()
    world.dim(bent, 6.0)
    world.describe(named, "CLI-77777 Calle Nueva")


_HAPPENINGS: dict[str, Callable[[OltWorld], None]] = {"inventory": _happen_to_places, "readings": _happen_to_light}


def _node(olt: Olt, query_type: QueryType, columns: tuple[str, ...]) -> WorkflowNode:
    job = make_job(query_type=query_type, columns=columns)
    SnmpJob.objects.filter(id=job.id).update(max_attempts=MOST_MOMENTS + 1, retry_delay_seconds=1)
    return make_node(olt, job, next_run_at=None, interval_seconds=int(FAR.total_seconds()))


def _make_due(node: WorkflowNode) -> None:
    WorkflowNode.objects.filter(id=node.id).update(next_run_at=_now())


def _claim() -> tuple[int, int]:
    """Claim what is due or waits to go on, as a scheduler would a little later."""
    now = _now() + A_WHILE
    waiting = list(load_unfinished(now).waiting)
    [claimed] = claim_assignments([Assignment((waiting or load_due_nodes(now))[0], 0)], owner="scheduler", now=now)
    return claimed.execution_id, claimed.token


def _poll_undisturbed(node: WorkflowNode) -> None:
    _make_due(node)
    asyncio.run(_run(*_claim()))


def _rows() -> Rows:
    return {model.__name__: sorted(map(repr, model._default_manager.values_list())) for model in STORED}


def _now() -> datetime:
    return datetime.now(UTC)


def _fork_victim(moment: int) -> Victim:
    """Fork a process that waits for its run; call it before this process opens connections or threads."""
    ambush, (reported, orders) = Ambush(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(reported)
        return Victim(pid, orders, ambush)
    os.close(orders)
    end_with_parent()
    _lay(moment, ambush.spring)
    if words := os.read(reported, 100).split():
        asyncio.run(_run(int(words[0]), int(words[1])))
    os._exit(0)


async def _run(execution_id: int, token: int) -> None:
    async with open_parts(ENGINE) as parts:
        await parts.runner(OltCollector(parts.devices)).run(execution_id, token)


def _lay(moment: int, spring: Callable[[], None]) -> None:
    """Wrap the finishing transaction, so that the victim meets its ambush at this moment of it."""
    finish = runner.NodeRunner._finish

    def finish_watched(self: Any, run: Any, collected: Any) -> Any:
        moments = count(1)

        def pass_moment() -> None:
            if next(moments) == moment:
                spring()

        def execute_watched(execute: Any, *what: Any) -> Any:
            pass_moment()
            return execute(*what)

        commit = connection._commit  # type: ignore[attr-defined]

        def commit_watched() -> None:
            pass_moment()
            commit()
            pass_moment()

        connection._commit = commit_watched  # type: ignore[attr-defined]
        with connection.execute_wrapper(execute_watched):
            return finish(self, run, collected)

    runner.NodeRunner._finish = finish_watched  # type: ignore[method-assign]
