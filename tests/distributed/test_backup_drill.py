"""The drill: dumped under load, lost, restored into an empty server, where the schedule goes on."""

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from psycopg.rows import namedtuple_row
from pytest_django import Settings

from distributed.simulated_olts import LONG, add, has_ended, is_running, simulated
from facho.executions.models import Execution
from facho.simulator.server import SimulatedOlt, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import SnmpJob
from facho.snmp_jobs.store import grid_of
from servers.cluster import Cluster, wait_until
from servers.postgresql import PostgresqlServer, private_server

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.thorough]

LEASE_SECONDS, PACKET_SECONDS = 5.0, 0.5
INTERVAL = timedelta(seconds=5)
QUICK = SimulatorConfig(vendor="huawei_smartax", olts=10, onus=8, latency_ms=20, life=STILL)
# A scheduler looks once a second, and this machine may be busy.
LATE = timedelta(seconds=4)
# As after any other loss.
PATIENCE_SECONDS = LEASE_SECONDS + PACKET_SECONDS + 35


@pytest.fixture(autouse=True)
def _short_times(settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS, settings.FACHO_LEASE_SECONDS = PACKET_SECONDS, LEASE_SECONDS


@pytest.fixture
def empty_server() -> Iterator[PostgresqlServer]:
    """A second server, with an empty database."""
    with tempfile.TemporaryDirectory(prefix="facho-drill-") as name:
        Path(name).chmod(0o711)
        with private_server(Path(name)) as server:
            with psycopg.connect(f"{server.url.rpartition('/')[0]}/postgres", autocommit=True) as connection:
                connection.execute("CREATE DATABASE facho")
            yield server


@dataclass(frozen=True, slots=True)
class Restored:
    """Looks at what became of the restored rows; Django looks at the lost server."""

    server: PostgresqlServer

    def ask(self, question: str) -> list[Any]:
        """Return the rows of the answer."""
        with psycopg.connect(self.server.url, row_factory=namedtuple_row) as connection:
            return connection.execute(question.encode()).fetchall()

    def running(self) -> set[tuple[int, str]]:
        """Return who holds which execution."""
        return {(row.id, row.owner) for row in self.ask("SELECT id, owner FROM snmp_executions WHERE status='RUNNING'")}

    def nodes_served_since(self, moment: datetime) -> set[int]:
        """Return the nodes with a success that began after the moment."""
        ended = self.ask("SELECT node_id, started_at FROM snmp_executions WHERE status='SUCCESS'")
        return {row.node_id for row in ended if row.started_at > moment}

    def slots(self, node_id: int) -> dict[datetime, Any]:
        """Return the slots of a node with the execution that served each, in order; None for skipped ones."""
        served = self.ask(f"SELECT id, slot_at, started_at FROM snmp_executions WHERE node_id={node_id}")  # noqa: S608
        skipped = self.ask(f"SELECT slot_at FROM skipped_slots WHERE node_id={node_id}")  # noqa: S608
        found = {row.slot_at: None for row in skipped} | {row.slot_at: row for row in served if row.slot_at}
        return dict(sorted(found.items()))


def test_what_was_dumped_under_load_goes_on_from_an_empty_server(
    cluster: Cluster, empty_server: PostgresqlServer, tmp_path: Path
) -> None:
    """Redis keeps the messages of the time that was lost; they mean nothing any more, and do no harm."""
    dump, after = tmp_path / "facho.dump", Restored(empty_server)
    with simulated(QUICK) as quick, simulated(LONG) as slow:
        nodes = _begin(cluster, quick, slow)
        _run("pg_dump", "--format=custom", f"--file={dump}", cluster.environ["DATABASE_URL"])
        known = Execution.objects.count()
        wait_until(lambda: Execution.objects.count() >= known + QUICK.olts, "runs that the dump does not know")
        for name in list(cluster.processes):
            cluster.kill(name)

        restore = ["pg_restore", "--no-owner", "--single-transaction", "--exit-on-error"]
        _run(*restore, f"--dbname={empty_server.url}", str(dump))
        dead, restored_at = after.running(), timezone.now()
        cluster.environ["DATABASE_URL"] = empty_server.url
        _start(cluster, "restored")
        wait_until(lambda: not after.running() & dead, "the claims of the dead run out", seconds=PATIENCE_SECONDS)
        wait_until(
            lambda: after.nodes_served_since(restored_at) >= set(nodes), "every OLT again", seconds=PATIENCE_SECONDS
        )
        served_at = timezone.now()
        wait_until(lambda: timezone.now() > served_at + 2 * INTERVAL, "some more slots")
        cluster.stop_all()

    begun_before = {execution_id for execution_id, _owner in dead}
    assert dead
    assert max(olt.counters.max_in_flight for olt in [*quick, *slow]) == 1
    for node_id in nodes[: QUICK.olts]:
        slots = after.slots(node_id)
        # One slot after the other, each either served or reported: on the grid, none lost, none twice.
        assert {later - slot for slot, later in pairwise(slots)} == {INTERVAL}
        # A claim of the last moment is none that has started.
        begun = [row for row in slots.values() if row and row.started_at and row.id not in begun_before]
        fresh = [row for row in begun if row.started_at > restored_at]
        assert len(fresh) >= 2
        # No burst: the first one serves the slot of its time, and the others theirs. What the dump caught in the
        # middle of a run is tried again for the slot that it had.
        assert max(row.started_at - row.slot_at for row in fresh) < INTERVAL + LATE


def _begin(cluster: Cluster, quick: list[SimulatedOlt], slow: list[SimulatedOlt]) -> list[int]:
    """Poll all OLTs on their grids, until each was served and a long run is under way; returns the nodes' ids."""
    seconds = int(INTERVAL.total_seconds())
    nodes = add(quick, interval_seconds=seconds)
    for node in nodes:
        node.offset_seconds = node.id % seconds
        node.next_run_at = grid_of(node).next_after(timezone.now())
        node.save(update_fields=["offset_seconds", "next_run_at"])
    nodes += add(slow)
    # A run that a dead process left is tried again soon, and no node is suspended for it.
    SnmpJob.objects.update(retry_delay_seconds=1, max_attempts=50)
    _start(cluster, "lost")
    wait_until(lambda: has_ended(len(quick)) and is_running(), "a first round")
    return [node.id for node in nodes]


def _start(cluster: Cluster, name: str) -> None:
    cluster.start_worker(f"{name}-worker", slots=QUICK.olts + 2)
    # With so short a lease, what a scheduler claims is given up before a worker has started.
    wait_until(lambda: "worker.started" in cluster.log(f"{name}-worker"), "a worker")
    cluster.start_scheduler(f"{name}-scheduler")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)
