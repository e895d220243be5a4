"""Workers and schedulers whose machine is frozen for three leases, and their monotonic clocks with it."""

import os

import pytest
from pytest_django import Settings

from crash.cell import pid_of
from crash.devices import simulated
from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.server import SimulatorConfig
from facho.zabbix_pollers.models import LeaderLease
from race.frozen import CLOCKS, DEVICES, FEWEST_RUNS, FrozenClock, add_olts, findings, freeze_again_and_again
from race.test_frozen_machines import MANY, OLTS
from servers.cluster import Cluster, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]

WORKERS = ("worker-0", "worker-1")
SCHEDULERS = ("scheduler-0", "scheduler-1")


@pytest.fixture(autouse=True)
def _short_times(settings: Settings) -> None:
    settings.FACHO_LEASE_SECONDS = 3.0
    # Longer than a simulated OLT waits for its turn on a busy machine: an answer given up leaves two questions there.
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 1.5
    settings.FACHO_POLLERS = 20


def start_frozen(cluster: Cluster, name: str) -> FrozenClock:
    """Start a process with a clock of its own."""
    clock = FrozenClock(cluster.folder / f"{name}-hidden")
    environ = dict(cluster.environ)
    cluster.environ |= {
        "PYTHONPATH": os.pathsep.join([str(CLOCKS), environ.get("PYTHONPATH", "")]),
        "FACHO_TEST_HIDDEN": str(clock.path),
    }
    if name in WORKERS:
        cluster.start_worker(name, slots=10)
    else:
        cluster.start_scheduler(name)
    cluster.environ = environ
    return clock


def busy_worker_or_leader(turn: list[int], workers: set[int]) -> int | None:
    """Choose in turn the worker that runs the most and the scheduler that leads, while enough runs."""
    owners = [pid_of(row) for row in Execution.objects.filter(status=ExecutionState.RUNNING)]
    if len(owners) < FEWEST_RUNS:
        return None
    turn[0] += 1
    if turn[0] % 2:
        return max(workers, key=owners.count)
    leader = LeaderLease.objects.values_list("owner", flat=True).first()
    return int(leader.split("/")[-2]) if leader else None


@pytest.mark.parametrize("freezes", [2, pytest.param(MANY, marks=pytest.mark.thorough)])
def test_frozen_workers_and_leaders_send_nothing_that_others_do_not_expect(cluster: Cluster, freezes: int) -> None:
    """D7, on PostgreSQL and Redis with real workers: counted at the devices."""
    with simulated(SimulatorConfig(**DEVICES, olts=OLTS)) as devices:
        add_olts(devices)
        clocks = {name: start_frozen(cluster, name) for name in WORKERS}
        wait_until(lambda: all("worker.started" in cluster.log(name) for name in WORKERS), "the workers")
        clocks |= {name: start_frozen(cluster, name) for name in SCHEDULERS}
        by_pid = {cluster.processes[name].pid: clock for name, clock in clocks.items()}
        workers, turn = {cluster.processes[name].pid for name in WORKERS}, [0]
        freeze_again_and_again(lambda: busy_worker_or_leader(turn, workers), by_pid, freezes)
        cluster.stop_all()
        seen = findings(devices)

    assert (seen["overlaps"], seen["strays"]) == ([], []), seen
    assert seen["taken_over"] >= freezes // 2, f"nobody went on with what was frozen: {seen}"
    assert seen["succeeded"] > OLTS, seen
