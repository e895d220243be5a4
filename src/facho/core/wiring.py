"""The one place where the parts are joined: who runs a node, where it stores, what happens when it ends."""

import asyncio
import math
import os
import secrets
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from facho.core.env import Mode
from facho.executions import store as executions
from facho.executions.models import Origin
from facho.executions.runner import (
    Executor,
    Finished,
    Hints,
    InProcessExecutor,
    NodeRunner,
    Times,
)
from facho.executions.store import Active, ClaimRequest
from facho.hosts.store import save_answer
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.infrastructure.storage import Storage, open_storage
from facho.polling.domain.collection import Collector
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.snmp.memory import Memory
from facho.polling.snmp.network import Network
from facho.polling.vendors.definition import Definition
from facho.snmp_get.collector import OltCollector
from facho.snmp_get.identity import IdentityCollector, ProbeReport
from facho.snmp_get.reading import Devices
from facho.snmp_get.recording import Progress, Recording, RecordingCollector
from facho.snmp_get.trial import Trial, TrialBounds, TrialCollector
from facho.zabbix_pollers import store as pollers
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from facho.zabbix_pollers.store import apply_first_jobs, hand_back

ENGINE = "engine"
COMMAND_LINE = executions.COMMAND

# A run in hand may take this long before a person's question gets its turn.
WAIT_SECONDS = 60.0
# How often a command looks whether the OLT has become free.
CLAIM_RETRY_SECONDS = 0.2


class OltBusy(Exception):
    """Another operation holds the OLT, and did so for as long as the caller would wait."""


@dataclass(frozen=True, slots=True)
class Parts:
    network: Network
    database: ThreadGateway
    clock: SystemClock
    owner: str
    hints: Hints
    storage: Storage = field(default_factory=lambda: Storage(reserve=None))
    # The OLTs that this process polls and probes; of several engines none touches those of another.
    shard: Shard = WHOLE

    @property
    def devices(self) -> Devices:
        """The way to every OLT, with the installation's patience."""
        return Devices(self.network, self.database, settings.FACHO_PACKET_TIMEOUT_SECONDS)

    def runner(self, collector: Collector) -> NodeRunner:
        """Build a runner whose finishing transaction moves schedule, poller and health."""
        return NodeRunner(
            collector=collector,
            database=self.database,
            clock=self.clock,
            owner=self.owner,
            times=Times(settings.FACHO_LEASE_SECONDS, settings.FACHO_YIELD_SECONDS),
            finishing_steps=(
                pollers.end_first_discovery,
                pollers.save_node_ended,
                pollers.release_poller,
                self._save_health,
            ),
            hints=self.hints,
        )

    def _save_health(self, finished: Finished, now: datetime) -> None:
        """Save what the run says of the OLT; silence says nothing where workers reach it and a command may not."""
        is_elsewhere = settings.FACHO_MODE is Mode.DISTRIBUTED and self.owner.startswith(f"{COMMAND_LINE}/")
        if finished.was_heard or not is_elsewhere:
            save_answer(finished.run.olt_id, finished.ending.failure, was_heard=finished.was_heard, now=now)


@dataclass(frozen=True, slots=True)
class Engine:
    scheduler: ZabbixScheduler
    executor: InProcessExecutor


@asynccontextmanager
async def open_parts(role: str, shard: Shard = WHOLE) -> AsyncIterator[Parts]:
    """Open sockets and database threads for a process of this role, and close them in the end."""
    storage = open_storage()
    database = ThreadGateway(storage=storage)
    try:
        runs = math.ceil(settings.FACHO_POLLERS / shard.count)
        async with Network(Memory.for_runs(runs), database.calm) as network, _open_hints() as hints:
            yield Parts(network, database, SystemClock(), new_owner(role), hints, storage, shard)
    finally:
        await database.close()


def build_engine(parts: Parts, *, dead_owners: str | None = None) -> Engine:
    """Join scheduler, pollers, executor and collector; `dead_owners` is how the owners begin that are known to be."""
    collector = OltCollector(parts.devices)
    executor = InProcessExecutor(parts.runner(collector), lambda: scheduler.on_task_completed())
    scheduler = build_scheduler(parts, executor, dead_owners=dead_owners)
    return Engine(scheduler, executor)


def build_scheduler(parts: Parts, executor: Executor, *, dead_owners: str | None = None) -> ZabbixScheduler:
    manager = PollerManager(
        start_pollers=settings.FACHO_POLLERS,
        database=parts.database,
        executor=executor,
        owner=parts.owner,
        # The engines of one machine reach the same OLTs.
        groups={} if settings.FACHO_MODE is Mode.EMBEDDED else settings.FACHO_POLLER_GROUPS,
        shard=parts.shard,
    )
    return ZabbixScheduler(
        pollers=manager,
        database=parts.database,
        clock=parts.clock,
        owner=parts.owner,
        leases=Leases(settings.FACHO_LEASE_SECONDS, settings.FACHO_PACKET_TIMEOUT_SECONDS),
        dead_owners=dead_owners,
        storage=parts.storage,
        shard=parts.shard,
    )


async def hand_back_runs(parts: Parts, *, asking: Collection[int]) -> None:
    """Release what this process still runs; not what still waits for an answer, since its OLT is busy."""
    left = await parts.database.run(executions.load_active_of_owner, parts.owner)
    begun = [run for run in left if run.status is ExecutionState.RUNNING and run.execution_id not in asking]
    await parts.database.run(hand_back, begun, now=parts.clock.now())


async def probe(parts: Parts, olt_id: int, *, wait_seconds: float) -> ProbeReport:
    """Ask an OLT who it is; OltBusy when it stays busy."""
    collector = IdentityCollector(parts.network, parts.database)
    wish = ClaimRequest(olt_id=olt_id, task_type="probe", origin=Origin.PROBE)
    await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
    return collector.report


async def recognise_olt(parts: Parts, olt_id: int, *, wait_seconds: float) -> ProbeReport:
    """Probe an OLT; one without a workflow gets the jobs of its vendor."""
    report = await probe(parts, olt_id, wait_seconds=wait_seconds)
    await parts.database.run(apply_first_jobs, olt_id, now=parts.clock.now())
    return report


def probe_olt(olt_id: int) -> ProbeReport:
    """Probe from a command: wait for the OLT's turn, ask, and store what it said."""

    async def run() -> ProbeReport:
        async with open_parts(COMMAND_LINE) as parts:
            return await recognise_olt(parts, olt_id, wait_seconds=WAIT_SECONDS)

    return asyncio.run(run())


async def record(parts: Parts, olt_id: int, *, progress: Progress, with_live: bool, wait_seconds: float) -> Recording:
    """Read everything that an OLT's definition names; OltBusy when it stays busy."""
    collector = RecordingCollector(parts.devices, progress, with_live=with_live)
    wish = ClaimRequest(olt_id=olt_id, task_type="record", origin=Origin.MANUAL)
    await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
    return collector.recording


async def try_definition(
    parts: Parts, olt_id: int, definition: Definition, *, bounds: TrialBounds, wait_seconds: float
) -> Trial:
    """Read some of every column of a definition that need not be the OLT's; OltBusy when it stays busy."""
    collector = TrialCollector(parts.devices, definition, bounds)
    wish = ClaimRequest(olt_id=olt_id, task_type="vendor_try", origin=Origin.MANUAL)
    await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
    return collector.trial


async def run_interactive(parts: Parts, wish: ClaimRequest, collector: Collector, *, wait_seconds: float) -> None:
    """Let a collector that a person waits for have its turn, under the OLT's claim like everything else."""
    claimed = await _claim_when_free(parts, wish, wait_seconds)
    try:
        await parts.runner(collector).run(claimed.execution_id, claimed.token)
    except asyncio.CancelledError:
        # The session was closed, so the OLT works on no request: the lease need not run out.
        reason, now = "the command was cancelled", parts.clock.now()
        await parts.database.run(executions.interrupt, [claimed.execution_id], reason=reason, now=now)
        raise


async def _claim_when_free(parts: Parts, wish: ClaimRequest, wait_seconds: float) -> Active:
    give_up_at = parts.clock.monotonic() + wait_seconds
    while True:
        claimed = await parts.database.run(executions.claim, [wish], owner=parts.owner, now=parts.clock.now())
        if claimed:
            return claimed[0]
        if parts.clock.monotonic() >= give_up_at:
            raise OltBusy
        await asyncio.sleep(CLAIM_RETRY_SECONDS)


@asynccontextmanager
async def _open_hints() -> AsyncIterator[Hints]:
    if settings.FACHO_MODE is Mode.EMBEDDED:
        yield Hints()
        return
    # Its client takes half a second to import, which no command of the embedded product should wait for.
    from facho.core.redis import open_hints

    async with open_hints(settings.REDIS_URL, lock_seconds=settings.FACHO_LEASE_SECONDS) as hints:
        yield hints


def new_owner(role: str) -> str:
    """Name a process so that no other ever has the name."""
    return f"{role}/{socket.gethostname()[:40]}/{os.getpid()}/{secrets.token_hex(4)}"
