"""The real scheduler and runner on a clock that the test moves, with devices that answer as it says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from facho.executions.runner import Finished, InProcessExecutor, NodeRunner, Times
from facho.hosts.store import save_answer
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.zabbix_pollers import store
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW
from zabbix_pollers.scheduler_world import VirtualClock, play_in

GOOD = Collected({"onus": 1}, was_heard=True)
SILENCE = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))
GARBAGE = Collected(failure=Failure(FailureKind.MALFORMED, "not SNMP"), was_heard=True)

Device = Callable[[CollectRequest, RunControl], Awaitable[Collected]]


@dataclass
class Scripted:
    """Devices that answer as the test says, or well."""

    answer: Device
    asked: list[tuple[int, datetime]] = field(default_factory=list)
    clock: VirtualClock = field(default_factory=VirtualClock)

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        self.asked.append((request.olt_id, self.clock.now()))
        control.check()
        return await self.answer(request, control)


class World:
    """One engine; `pass_time` moves the clock in steps of a second where something may happen."""

    def __init__(self, database: ThreadGateway, answer: Device) -> None:
        self.clock = VirtualClock()
        self.database = database
        self.devices = Scripted(answer, clock=self.clock)
        runner = NodeRunner(
            self.devices,
            database,
            self.clock,
            "engine/one",
            Times(lease_seconds=1e6, yield_after_seconds=60),
            finishing_steps=(store.save_node_ended, store.release_poller, _save_health),
        )
        self.executor = InProcessExecutor(runner, lambda: None)
        manager = PollerManager(start_pollers=3, database=database, executor=self.executor, owner="engine/one")
        self.scheduler = ZabbixScheduler(manager, database, self.clock, "engine/one", Leases(1e6, 5))

    async def tick(self) -> None:
        """Let the scheduler look, and everything it started come to its end."""
        while await self.scheduler.tick():
            await self.executor.drain(timeout_seconds=60)

    async def pass_time(self, seconds: float, *, step: float = 10) -> None:
        """Move on, with a look at every step."""
        end = self.clock.wall + timedelta(seconds=seconds)
        while self.clock.wall < end:
            self.clock.advance(step)
            await self.tick()

    @property
    def minutes_asked(self) -> list[float]:
        """When devices were asked, in minutes from the start."""
        return [round((at - NOW).total_seconds() / 60, 2) for _, at in self.devices.asked]


def play(scene: Callable[[World], Awaitable[None]], answer: Device) -> World:
    """Play a scene against devices that answer so, and return the world as it was left."""
    return play_in(lambda database: World(database, answer), scene)


def _save_health(finished: Finished, now: datetime) -> None:
    save_answer(finished.run.olt_id, finished.ending.failure, was_heard=finished.was_heard, now=now)


async def well(request: CollectRequest, control: RunControl) -> Collected:
    """Answer as one hopes."""
    return GOOD


async def silent(request: CollectRequest, control: RunControl) -> Collected:
    """Do not answer."""
    return SILENCE


async def garbled(request: CollectRequest, control: RunControl) -> Collected:
    """Answer something that is no SNMP."""
    return GARBAGE


def in_turn(*answers: Collected) -> Device:
    """Give these answers one after the other, and then good ones."""
    left = list(answers)

    async def answer(request: CollectRequest, control: RunControl) -> Collected:
        return left.pop(0) if left else GOOD

    return answer
