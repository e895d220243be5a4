"""Pollers while composites run: busy from the master to the end of the chain, and at once given the next."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import groupby

import pytest

from facho.executions.models import Execution
from facho.executions.runner import InProcessExecutor, NodeRunner, Times
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.polling.domain.execution_state import QueryType
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import scheduler as scheduling
from facho.zabbix_pollers import store
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.read_model import load_pollers
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import chain_to, make_job, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 60
Answer = Callable[["Engine", CollectRequest], Awaitable[None]]


@dataclass
class Engine:
    """The real scheduler and runner, with devices that answer as a test says."""

    answer: Answer
    pollers: int
    database: ThreadGateway = field(default_factory=ThreadGateway)
    clock: SystemClock = field(default_factory=SystemClock)
    samples: list[tuple[str, str]] = field(default_factory=list)

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        await self.answer(self, request)
        return Collected(was_heard=True)

    async def sampled(self, number: int) -> None:
        """Return after so many further looks at the pollers."""
        enough = len(self.samples) + number
        while len(self.samples) < enough:
            await self.sample()

    async def sample(self) -> None:
        self.samples.append(await self.database.run(self._look))

    def _look(self) -> tuple[str, str]:
        return Poller.objects.get(poller_id=0).status, load_pollers(self.clock.now())[0].status

    async def run_until(self, is_done: Callable[[], bool]) -> None:
        runner = NodeRunner(
            self, self.database, self.clock, "engine/one", Times(60, 60), (store.save_node_ended, store.release_poller)
        )
        executor = InProcessExecutor(runner, lambda: scheduler.on_task_completed())
        manager = PollerManager(
            start_pollers=self.pollers, database=self.database, executor=executor, owner="engine/one"
        )
        scheduler = ZabbixScheduler(manager, self.database, self.clock, "engine/one", Leases(60, 5))
        stop = asyncio.Event()
        loop = asyncio.create_task(scheduler.scheduler_loop(stop))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await self.database.run(is_done):
                    await self.sample() if self.samples else await asyncio.sleep(0)
        finally:
            stop.set()
            scheduler.on_task_completed()
            await loop
            await executor.drain(timeout_seconds=10)
            await self.database.close()


@pytest.fixture(autouse=True)
def _only_the_end_of_a_run_plans_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no tick come by itself after the first, so that what starts was started by an end."""
    monkeypatch.setattr(scheduling, "TICK_SECONDS", 3_600.0)


def play(answer: Answer, is_done: Callable[[], bool], *, pollers: int = 1) -> Engine:
    async def run() -> Engine:
        engine = Engine(answer, pollers)
        await engine.run_until(is_done)
        return engine

    return asyncio.run(run())


def ended(number: int) -> Callable[[], bool]:
    return lambda: Execution.objects.filter(finished_at__isnull=False).count() >= number


def order() -> list[int | None]:
    return list(Execution.objects.order_by("id").values_list("node_id", flat=True))


async def at_once(engine: Engine, request: CollectRequest) -> None:
    """Answer without a delay."""


def test_a_poller_never_looks_free_while_its_chain_runs() -> None:
    """S2-17, S2-08, D1: sampled many times within each of the four members and between them."""
    master = make_node(interval_seconds=3_600)
    members = [chain_to(master) for _ in range(3)]

    async def slowly(engine: Engine, request: CollectRequest) -> None:
        await engine.sampled(5)

    def is_free_again() -> bool:
        return ended(4)() and Poller.objects.filter(poller_id=0, tasks_completed=1).exists()

    engine = play(slowly, is_free_again)

    for states in zip(*engine.samples, strict=True):
        stretches = [state for state, _ in groupby(states)]
        assert stretches in ([PollerStatus.BUSY], [PollerStatus.BUSY, PollerStatus.FREE])
        assert states.count(PollerStatus.BUSY) >= 4 * 5
    assert order() == [master.id, *(member.id for member in members)]


def test_no_chain_is_lost_when_pollers_are_scarce() -> None:
    """S2-09: each chain runs whole on the poller of its master; the other composite waits for it."""
    masters = [make_node(interval_seconds=3_600) for _ in range(3)]
    chains = {master.id: [master.id, *(chain_to(master).id for _ in range(2))] for master in masters}

    play(at_once, ended(9))

    ran = order()
    assert [chains[node_id] for node_id in ran[::3] if node_id] == [ran[0:3], ran[3:6], ran[6:9]]
    assert len(set(ran)) == 9


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_composite_starts_the_next_node_of_its_olt_at_once(fails: bool) -> None:
    """S0-31, S4-10, S4-11, S4-17: also when it ends by an error; no tick is waited for."""
    olt = make_olt()
    get = make_node(olt, interval_seconds=3_600)
    discovery = make_node(olt, make_job(query_type=QueryType.DISCOVERY), interval_seconds=3_600)
    WorkflowNode.objects.update(next_run_at=SystemClock().now())

    async def answer(engine: Engine, request: CollectRequest) -> None:
        if fails and request.query_type is QueryType.DISCOVERY:
            raise RuntimeError("a defect")

    def get_ended() -> bool:
        return Execution.objects.filter(node=get, finished_at__isnull=False).exists()

    play(answer, get_ended, pollers=3)

    assert order() == [discovery.id, get.id]
    first, second = Execution.objects.order_by("id")
    let_go_at = first.finished_at or second.created_at
    assert second.started_at is not None
    assert (second.started_at - let_go_at).total_seconds() < 1
