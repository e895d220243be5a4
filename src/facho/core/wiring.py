"""The one place where the parts are joined: who runs a node, where it stores, what happens when it ends."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from facho.core.clock import SystemClock
from facho.core.env import Mode
from facho.core.gateway import ThreadGateway
from facho.executions import store as executions
from facho.executions.executor import Executor, InProcessExecutor
from facho.executions.hints import Hints, NoHints
from facho.executions.models import Origin
from facho.executions.runner import Finished, FinishingStep, NodeRunner, Times
from facho.executions.store import Claimed, ClaimRequest
from facho.hosts.store import save_answer
from facho.polling.domain.collection import Collector
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.snmp.network import Network
from facho.snmp_get.collector import OltCollector
from facho.snmp_get.device import Devices
from facho.snmp_get.identity import IdentityCollector, ProbeReport
from facho.snmp_get.recording import Progress, Recording, RecordingCollector
from facho.zabbix_pollers import store as pollers
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.recovery import hand_back
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler

ENGINE = "engine"
COMMAND_LINE = executions.COMMAND

# How often a command looks whether the OLT has become free.
CLAIM_RETRY_SECONDS = 0.2


class OltBusy(Exception):
    """Another operation holds the OLT, and did so for as long as the caller would wait."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What every process that speaks to OLTs has."""

    network: Network
    database: ThreadGateway
    clock: SystemClock
    owner: str
    hints: Hints

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
            finishing_steps=(pollers.save_node_ended, pollers.release_poller, self._health_step),
            hints=self.hints,
        )

    @property
    def _health_step(self) -> FinishingStep:
        """What a silence says of the OLT: nothing, where workers reach it and the machine of a command may not."""
        is_elsewhere = settings.FACHO_MODE is Mode.DISTRIBUTED and self.owner.startswith(f"{COMMAND_LINE}/")
        return _save_health_if_heard if is_elsewhere else _save_health


@dataclass(frozen=True, slots=True)
class Engine:
    """The scheduler with its pollers, on one event loop."""

    scheduler: ZabbixScheduler
    executor: InProcessExecutor


@asynccontextmanager
async def open_parts(role: str) -> AsyncIterator[Parts]:
    """Open sockets and database threads for a process of this role, and close them in the end."""
    database = ThreadGateway()
    try:
        async with Network() as network, _open_hints() as hints:
            yield Parts(network, database, SystemClock(), new_owner(role), hints)
    finally:
        await database.close()


def build_engine(parts: Parts) -> Engine:
    """Join scheduler, pollers, executor and collector."""
    collector = OltCollector(parts.devices)
    executor = InProcessExecutor(parts.runner(collector), lambda: scheduler.on_task_completed())
    scheduler = build_scheduler(parts, executor)
    return Engine(scheduler, executor)


def build_scheduler(parts: Parts, executor: Executor) -> ZabbixScheduler:
    """Join scheduler and pollers with whoever carries executions out."""
    manager = PollerManager(
        start_pollers=settings.FACHO_POLLERS,
        database=parts.database,
        executor=executor,
        owner=parts.owner,
        # One engine reaches every OLT or none.
        groups={} if settings.FACHO_MODE is Mode.EMBEDDED else settings.FACHO_POLLER_GROUPS,
    )
    return ZabbixScheduler(
        pollers=manager,
        database=parts.database,
        clock=parts.clock,
        owner=parts.owner,
        leases=Leases(settings.FACHO_LEASE_SECONDS, settings.FACHO_PACKET_TIMEOUT_SECONDS),
    )


async def hand_back_runs(parts: Parts) -> None:
    """Let go of what this process still runs, so that it goes on elsewhere at once."""
    left = await parts.database.run(executions.load_active_of_owner, parts.owner)
    begun = [run for run in left if run.status is ExecutionState.RUNNING]
    await parts.database.run(hand_back, begun, now=parts.clock.now())


async def probe(parts: Parts, olt_id: int, *, wait_seconds: float) -> ProbeReport:
    """Ask an OLT who it is; OltBusy when it stays busy."""
    collector = IdentityCollector(parts.network, parts.database)
    wish = ClaimRequest(olt_id=olt_id, task_type="probe", origin=Origin.PROBE)
    await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
    return collector.report


async def record(parts: Parts, olt_id: int, *, progress: Progress, with_live: bool, wait_seconds: float) -> Recording:
    """Read everything that an OLT's definition names; OltBusy when it stays busy."""
    collector = RecordingCollector(parts.devices, progress, with_live=with_live)
    wish = ClaimRequest(olt_id=olt_id, task_type="record", origin=Origin.MANUAL)
    await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
    return collector.recording


async def run_interactive(parts: Parts, wish: ClaimRequest, collector: Collector, *, wait_seconds: float) -> None:
    """Let a collector that a person waits for have its turn, under the OLT's claim like everything else."""
    claimed = await _claim_when_free(parts, wish, wait_seconds)
    await parts.runner(collector).run(claimed.execution_id, claimed.token)


async def _claim_when_free(parts: Parts, wish: ClaimRequest, wait_seconds: float) -> Claimed:
    give_up_at = parts.clock.monotonic() + wait_seconds
    while True:
        claimed = await parts.database.run(executions.claim, [wish], owner=parts.owner, now=parts.clock.now())
        if claimed:
            return claimed[0]
        if parts.clock.monotonic() >= give_up_at:
            raise OltBusy
        await asyncio.sleep(CLAIM_RETRY_SECONDS)


def _save_health(finished: Finished, now: datetime) -> None:
    save_answer(finished.run.olt_id, finished.ending.failure, was_heard=finished.was_heard, now=now)


def _save_health_if_heard(finished: Finished, now: datetime) -> None:
    if finished.was_heard:
        _save_health(finished, now)


@asynccontextmanager
async def _open_hints() -> AsyncIterator[Hints]:
    if settings.FACHO_MODE is Mode.EMBEDDED:
        yield NoHints()
        return
    # Its client takes half a second to import, which no command of the embedded product should wait for.
    from facho.core.redis_hints import open_hints

    async with open_hints(settings.REDIS_URL, lock_seconds=settings.FACHO_LEASE_SECONDS) as hints:
        yield hints


def new_owner(role: str) -> str:
    """Name a process so that no other ever has the name."""
    return f"{role}/{socket.gethostname()[:40]}/{os.getpid()}/{secrets.token_hex(4)}"
