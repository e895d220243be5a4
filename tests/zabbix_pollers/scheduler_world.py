"""A scheduler on a virtual clock, with an executor that only takes notes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from facho.executions import store as executions
from facho.executions.models import Execution
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.ports import ClockReading
from facho.zabbix_pollers import store
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW


@dataclass
class VirtualClock:
    """Time that a test moves; the two clocks may be moved apart."""

    wall: datetime = NOW
    ticks: float = 1_000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks

    def reading(self) -> ClockReading:
        return ClockReading(self.ticks, self.ticks, self.wall.timestamp())

    def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.ticks += seconds


@dataclass
class Waiting:
    """An executor that notes what it was given and never runs it."""

    started: list[int] = field(default_factory=list)

    cancelled: list[int] = field(default_factory=list)

    def start(self, execution_id: int, token: int) -> None:
        self.started.append(execution_id)

    def cancel(self, execution_id: int, reason: str) -> None:
        self.cancelled.append(execution_id)


@dataclass
class World:
    """A scheduler on a virtual clock, with an executor that only takes notes."""

    clock: VirtualClock
    executor: Waiting
    scheduler: ZabbixScheduler

    def another(self, owner: str, shard: Shard = WHOLE) -> ZabbixScheduler:
        return build(self.scheduler.database, self.clock, self.executor, owner, shard=shard)  # type: ignore[arg-type]


def build(
    database: ThreadGateway,
    clock: VirtualClock,
    executor: Waiting,
    owner: str,
    pollers: int = 3,
    shard: Shard = WHOLE,
) -> ZabbixScheduler:
    """Join a scheduler and its pollers; `owner` is the name of the process that it stands for."""
    manager = PollerManager(start_pollers=pollers, database=database, executor=executor, owner=owner, shard=shard)
    leases = Leases(lease_seconds=60, packet_timeout_seconds=5)
    return ZabbixScheduler(manager, database, clock, owner, leases, shard=shard)


def play(scene: Callable[[World], Awaitable[None]], *, pollers: int = 3) -> World:
    """Play a scene with a scheduler that has not looked yet, and return the world as it was left."""

    def make(database: ThreadGateway) -> World:
        clock, executor = VirtualClock(), Waiting()
        return World(clock, executor, build(database, clock, executor, "engine/one", pollers))

    return play_in(make, scene)


class Scheduled(Protocol):
    """A world with a scheduler in it."""

    @property
    def scheduler(self) -> ZabbixScheduler: ...


SomeWorld = TypeVar("SomeWorld", bound=Scheduled)


def play_in(make: Callable[[ThreadGateway], SomeWorld], scene: Callable[[SomeWorld], Awaitable[None]]) -> SomeWorld:
    """Make a world, play a scene in it, and return it as it was left."""

    async def run() -> SomeWorld:
        database = ThreadGateway()
        world = make(database)
        await world.scheduler.pollers.prepare()
        try:
            await scene(world)
        finally:
            await database.close()
        return world

    return asyncio.run(run())


async def one_tick(world: World) -> None:
    """Let the scheduler look once."""
    await world.scheduler.tick()


def take_all() -> None:
    """Let a process take everything that is handed out, and die."""
    for active in executions.load_active():
        executions.take(active.execution_id, active.token, owner="engine/dead", now=NOW)


def end_all() -> None:
    """End every execution."""
    store.release_orphans(list(Execution.objects.values_list("id", flat=True)), reason="test", now=NOW)
