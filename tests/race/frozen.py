"""Machines that are frozen under load and come back: who went on meanwhile, and what the devices saw of it."""

import os
import select
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from crash.cell import held_by, pid_of
from crash.devices import Devices, judge, simulated
from crash.engine_process import fork_engine, wait_until
from facho.executions.models import Execution, ExecutionAttempt
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.snmp.session import MOST_TIMEOUTS
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from factories import make_job, make_node, make_olt

CLOCKS = Path(__file__).with_name("frozen_clocks")
INTERVAL_SECONDS = 3
LEASES_FROZEN = 3
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02
# Runs of about two seconds, so that whoever polls is in the middle of several.
DEVICES = {"vendor": "huawei_smartax", "onus": 200, "latency_ms": 150, "life": STILL}
FEWEST_RUNS = 5


class FrozenClock:
    """The seconds that a process does not know of."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seconds = 0.0
        path.write_bytes(struct.pack("d", 0.0))

    @contextmanager
    def freeze(self, pid: int) -> Iterator[None]:
        """Stop a process while the block runs; it comes back with a monotonic clock that stood still."""
        _stop_between_transactions(pid)
        stopped_at = time.monotonic()
        try:
            yield
        finally:
            self._seconds += time.monotonic() - stopped_at
            with self.path.open("r+b") as file:
                file.write(struct.pack("d", self._seconds))
            os.kill(pid, signal.SIGCONT)


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Freeze, again and again, the one of two engines that leads; return what was seen."""
    folder = Path(settings.DATA_FOLDER.path)
    clocks = [FrozenClock(folder / f"hidden-{os.getpid()}-{number}") for number in range(2)]
    engines = [
        fork_engine(f"engine{number}", folder, equip=partial(_have_clock_of_a_guest, clock))
        for number, clock in enumerate(clocks)
    ]
    with simulated(SimulatorConfig(**DEVICES, olts=order["olts"])) as devices:
        try:
            add_olts(devices)
            for engine in engines:
                engine.start()
            by_pid = {engine.pid: clock for engine, clock in zip(engines, clocks, strict=True)}
            freeze_again_and_again(lambda: _busiest(by_pid), by_pid, order["freezes"])
        finally:
            for engine in engines:
                engine.stop()
        seen = findings(devices)
    connections.close_all()
    return {**seen, "logs": {engine.role: engine.problems() for engine in engines}}


def _have_clock_of_a_guest(clock: FrozenClock) -> None:
    sys.path.insert(0, str(CLOCKS))
    from sitecustomize import hide_frozen_seconds  # type: ignore[attr-defined]

    hide_frozen_seconds(str(clock.path))


def add_olts(devices: Devices) -> None:
    """Give each OLT a master of its own that is due all the time."""
    job = make_job(query_type=QueryType.DISCOVERY, columns=())
    for number, olt in enumerate(devices.olts):
        row = make_olt(port=olt.port, vendor=olt.vendor)
        node = make_node(row, job, next_run_at=timezone.now(), interval_seconds=INTERVAL_SECONDS)
        WorkflowNode.objects.filter(id=node.id).update(offset_seconds=number % INTERVAL_SECONDS)
    # A try that died is followed by the next slot, so that an execution has one owner; the freezes suspend nobody.
    SnmpJob.objects.update(retry_delay_seconds=120, max_attempts=1_000)


def freeze_again_and_again(find_victim: Callable[[], int | None], clocks: dict[int, FrozenClock], freezes: int) -> None:
    """Freeze a process in the middle of its runs for some leases, and let it go on for one."""
    for _ in range(freezes):
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while (pid := find_victim()) is None:
            if time.monotonic() > give_up_at:
                raise TimeoutError("nobody polls")
            let_pass(LOOK_SECONDS)
        with clocks[pid].freeze(pid):
            let_pass(LEASES_FROZEN * settings.FACHO_LEASE_SECONDS)
        let_pass(settings.FACHO_LEASE_SECONDS)


def let_pass(seconds: float) -> None:
    """Wait."""
    select.select([], [], [], seconds)


def _busiest(pids: dict[int, FrozenClock]) -> int | None:
    """Return the process that runs the most now, if one runs enough."""
    running = Execution.objects.filter(status=ExecutionState.RUNNING)
    owners = [pid_of(row) for row in running]
    busiest = max(pids, key=owners.count)
    return busiest if owners.count(busiest) >= FEWEST_RUNS else None


def findings(devices: Devices) -> dict[str, Any]:
    """Compare what the devices saw with what the database allowed."""
    rows = list(Execution.objects.all())
    longest_answer = MOST_TIMEOUTS * settings.FACHO_PACKET_TIMEOUT_SECONDS
    verdict = judge(devices.packets, held_by(rows), answer_within=longest_answer)
    return {
        "packets": len(devices.packets),
        "executions": len(rows),
        "taken_over": ExecutionAttempt.objects.filter(error__contains="owner is gone").count(),
        "succeeded": sum(row.status == ExecutionState.SUCCESS for row in rows),
        "overlaps": verdict.overlaps,
        "strays": verdict.strays,
    }


def _stop_between_transactions(pid: int) -> None:
    """Stop a process that does not hold the lock of a SQLite file: nobody could go on beside it."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        wait_until(partial(_is_stopped, pid))
        if connection.vendor != "sqlite" or _can_write():
            return
        os.kill(pid, signal.SIGCONT)
        let_pass(LOOK_SECONDS)


def _can_write() -> bool:
    with closing(sqlite3.connect(settings.DATABASES["default"]["NAME"], isolation_level=None, timeout=0.3)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
