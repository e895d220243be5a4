"""Hours of polling through the database in virtual time: the real scheduler, runner, probes and coordinator.

Only the OLTs are played, by a script of outages; meanwhile people pause, disable and change things, and once in two
hours everything is killed and started again. Needs a database and Django.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any, ParamSpec, TypeVar

from django.db import connection

from bench.virtual_engine import DirectGateway, LoopClock
from facho.core.wiring import OltBusy, Parts, build_scheduler, run_interactive
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.executions.models import Origin
from facho.executions.runner import Hints, InProcessExecutor
from facho.executions.store import ClaimRequest, end_abandoned, load_active_of_owner
from facho.hosts.models import Olt
from facho.hosts.store import load_due_probes, pause
from facho.infrastructure.secrets import Secret
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import ExecutionState, FailureKind, QueryType
from facho.polling.domain.schedule import Span
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from facho.snmp_jobs.store import grid_of, request_runs
from facho.zabbix_pollers.store import after_probe, end_dead_tries, release_leadership

P = ParamSpec("P")
T = TypeVar("T")

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
BLOCK_MINUTES = 120
# How long a run takes to find out that nobody answers, and a probe to be answered.
SILENCE_SECONDS = 15.0
PROBE_SECONDS = 1.0
PORTS = 16
# By the type of the question: every how many seconds, and how many it takes.
JOBS = {
    QueryType.GET: (300, 5.0),
    QueryType.WALK: (420, 8.0),
    QueryType.DISCOVERY: (900, 10.0),
    QueryType.BULK: (3_600, 240.0),
    QueryType.TABLE: (7_200, 30.0),
}
SILENT = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))
GOOD = Collected(was_heard=True)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the coordinator passes, and how often OLTs are probed that are due for it."""

    pass_seconds: float
    probe_seconds: float


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


@dataclass
class ScriptedOlts:
    """A collector whose OLTs are silent when the script says so, and slow when they have too much to do."""

    clock: LoopClock
    silent: dict[int, list[Span]] = field(default_factory=dict)
    slow: dict[int, list[Span]] = field(default_factory=dict)
    # How many tries ended well, as the OLTs themselves know it.
    answered: int = 0

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        if self.is_silent(request.olt_id):
            await asyncio.sleep(SILENCE_SECONDS)
            return SILENT
        seconds = JOBS[request.query_type][1]
        if self._is(self.slow, request.olt_id) and request.query_type is QueryType.GET:
            seconds = JOBS[QueryType.GET][0] * 1.15
        ports = PORTS if request.query_type is QueryType.BULK else 1
        for port in range((request.cursor or {}).get("port", 0) + 1, ports + 1):
            await asyncio.sleep(seconds / ports)
            control.check()
            if port < ports and await control.should_yield():
                return Collected(was_heard=True, cursor={"port": port})
        self.answered += 1
        return GOOD

    def is_silent(self, olt_id: int) -> bool:
        """Tell whether nobody answers right now."""
        return self._is(self.silent, olt_id)

    def _is(self, spans: dict[int, list[Span]], olt_id: int) -> bool:
        return any(span.contains(self.clock.now()) for span in spans.get(olt_id, ()))


@dataclass
class ScriptedProbe:
    """A collector that only learns whether an OLT answers."""

    olts: ScriptedOlts
    answered: bool = False

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        await asyncio.sleep(PROBE_SECONDS)
        self.answered = not self.olts.is_silent(request.olt_id)
        return GOOD if self.answered else SILENT


class EngineRun:
    """One life of everything: scheduler, runner, probes and coordinator, until it is killed."""

    _numbers = count()

    def __init__(self, olts: ScriptedOlts, pace: Pace, on_pass: Callable[[], None]) -> None:
        database: Any = DirectGateway()
        clock: Any = olts.clock
        network: Any = None
        self.parts = Parts(network, database, clock, f"engine/{next(self._numbers)}", Hints())
        self.olts = olts
        self.executor = InProcessExecutor(self.parts.runner(olts), lambda: self.scheduler.on_task_completed())
        self.scheduler = build_scheduler(self.parts, self.executor)
        self.coordinator = ExecutionCoordinator()
        self._on_pass = on_pass
        self._take_over()
        loops = (
            self.scheduler.scheduler_loop(asyncio.Event()),
            self._repeat(self._coordinate, pace.pass_seconds),
            self._repeat(self._probe, pace.probe_seconds),
        )
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def kill(self) -> None:
        """Stop in the middle of everything, as a process does that is killed."""
        for task in self._tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks)
        await self.executor.drain(timeout_seconds=0)

    def _take_over(self) -> None:
        """Begin as an engine does that knows the former one to be dead."""
        now = self.parts.clock.now()
        left = [run for run in load_active_of_owner("engine/") if run.status is ExecutionState.RUNNING]
        end_dead_tries(left, reason="the engine was started again", now=now)
        release_leadership("engine/")

    async def _coordinate(self) -> None:
        self.coordinator.run_pass(self.parts.clock.now())
        self._on_pass()

    async def _probe(self) -> None:
        now = self.parts.clock.now()
        end_abandoned(now=now)
        for olt_id in load_due_probes(now):
            probe = ScriptedProbe(self.olts)
            wish = ClaimRequest(olt_id=olt_id, task_type="probe", origin=Origin.PROBE)
            with suppress(OltBusy):
                await run_interactive(self.parts, wish, probe, wait_seconds=0)
                after_probe(olt_id, answered=probe.answered, now=self.parts.clock.now())

    async def _repeat(self, chore: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await chore()
            await asyncio.sleep(seconds)


@dataclass(slots=True)
class Stint:
    """A time in which a node has slots: its first one, and every interval from an offset on until it ends."""

    first: datetime
    interval_seconds: int
    offset_seconds: int
    until: datetime | None = None

    def slots(self, hour: Span) -> Iterator[datetime]:
        """List those of an hour, by the numbers of its seconds."""
        start, end = int(hour.start.timestamp()), int(hour.end.timestamp())
        on_grid = range(start + (self.offset_seconds - start) % self.interval_seconds, end, self.interval_seconds)
        for slot in sorted({datetime.fromtimestamp(second, UTC) for second in on_grid} | {self.first}):
            if hour.contains(slot) and slot >= self.first and (self.until is None or slot < self.until):
                yield slot


class PolledHours:
    """Some hours of some OLTs, and what a bystander notes about them."""

    def __init__(self, pace: Pace, *, olts: int, hours: int, seed: int = 1, is_stormy: bool = False) -> None:
        self.pace, self.hours, self.is_stormy = pace, hours, is_stormy
        self.clock = LoopClock(START)
        self.devices = ScriptedOlts(self.clock)
        self.luck = Random(seed)
        # Of each master, and of the members with their masters.
        self.stints: dict[int, list[Stint]] = {}
        self.members: dict[int, int] = {}
        # Hours in which a person took work away: of a task, or of all tasks of an OLT.
        self.adjusted: list[tuple[int, str, datetime]] = []
        self.interrupted: list[tuple[int, datetime]] = []
        self.pauses: list[tuple[int | None, Span]] = []
        jobs = {kind: _make_job(kind, str(kind)) for kind in JOBS}
        described = _make_job(QueryType.GET, "described")
        self.olts = [self._add_olt(number, jobs, described) for number in range(olts)]

    async def play(self) -> None:
        for block in range(0, self.hours * 60, BLOCK_MINUTES):
            await self._play_block(START + minutes(block), first_olt=7 * block // BLOCK_MINUTES)
        await self.clock.wait_until(START + minutes(self.hours * 60 + 10))
        await self.engine.kill()
        # A running loop has a connection of its own, which no one else would close.
        connection.close()

    async def _play_block(self, begin: datetime, *, first_olt: int) -> None:
        """Play two hours: eight OLTs have their troubles, all are paused for a moment, and the engine is killed."""
        cast = [self.olts[(first_olt + number) % len(self.olts)] for number in range(8)]
        self._write_outages(begin, cast)
        self.engine = self._start()
        scenes = [
            self._disable_task(cast[2], begin + minutes(20.5), begin + minutes(64.5)),
            self._disable_olt(cast[3], begin + minutes(31.5), begin + minutes(75.5)),
            self._change_interval(cast[4], begin + minutes(33), 120),
            self._change_interval(cast[4], begin + minutes(93), 600),
            self._pause(cast[5], begin + minutes(40), 25),
            self._pause(None, begin + minutes(98), 3),
            self._kill_and_start(begin + minutes(46.3), begin + minutes(50)),
        ]
        if self.is_stormy:
            # Nobody can count the quotas of an hour that comes twice; but no slot of it gets lost.
            scenes += [self._set_clock(begin + minutes(25), 1_500), self._set_clock(begin + minutes(85), -700)]
            scenes += [self._kill_and_start(begin + minutes(at), begin + minutes(at + 0.4)) for at in (10, 57, 61, 66)]
            scenes += [self._ask(begin + minutes(at)) for at in (5, 30, 47, 77)]
        await asyncio.gather(*scenes)
        await self.clock.wait_until(begin + minutes(BLOCK_MINUTES) - timedelta(seconds=1))
        if begin + minutes(BLOCK_MINUTES) < START + minutes(self.hours * 60):
            await self.engine.kill()
            await self.clock.wait_until(begin + minutes(BLOCK_MINUTES))

    def _write_outages(self, begin: datetime, cast: Sequence[Olt]) -> None:
        spans = [(cast[0], 8, 21), (cast[0], 70, 73), (cast[1], 52, 88)]
        for olt in [olt for olt in self.olts if olt not in cast]:
            since = self.luck.uniform(0, 100)
            spans.append((olt, since, since + self.luck.choice((3, 6, 12, 30, 90))))
        for olt, since, until in spans:
            self.devices.silent.setdefault(olt.id, []).append(Span(begin + minutes(since), begin + minutes(until)))
        self.devices.slow.setdefault(cast[6].id, []).append(Span(begin, begin + minutes(BLOCK_MINUTES)))

    # What people do

    async def _disable_task(self, olt: Olt, since: datetime, until: datetime) -> None:
        await self.clock.wait_until(since)
        node = self._node(olt, QueryType.GET)
        WorkflowNode.objects.filter(id=node.id).update(enabled=False)
        self.stints[node.id][-1].until = since
        self.adjusted.append((olt.id, node.job.task_type, _hour(since)))
        await self.clock.wait_until(until)
        WorkflowNode.objects.filter(id=node.id).update(enabled=True)

    async def _disable_olt(self, olt: Olt, since: datetime, until: datetime) -> None:
        await self.clock.wait_until(since)
        Olt.objects.filter(id=olt.id).update(enabled=False)
        for node_id in WorkflowNode.objects.filter(workflow__olt=olt, is_chain_node=False).values_list("id", flat=True):
            self.stints[node_id][-1].until = since
        self.interrupted.append((olt.id, _hour(since)))
        await self.clock.wait_until(until)
        Olt.objects.filter(id=olt.id).update(enabled=True)

    async def _change_interval(self, olt: Olt, moment: datetime, seconds: int) -> None:
        """Change it when the next slot is a while off: at a slot either interval may be the one that counts."""
        await self.clock.wait_until(moment)
        node = self._node(olt, QueryType.GET)
        while node.next_run_at is None or node.next_run_at < self.clock.now() + minutes(0.75):
            await asyncio.sleep(1)
            node.refresh_from_db()
        WorkflowNode.objects.filter(id=node.id).update(interval_seconds=seconds)

    async def _pause(self, olt: Olt | None, moment: datetime, length: int) -> None:
        await self.clock.wait_until(moment)
        pause(olt, minutes=length, note="", now=moment)
        self.pauses.append((olt.id if olt else None, Span(moment, moment + minutes(length))))

    async def _kill_and_start(self, killed_at: datetime, started_at: datetime) -> None:
        await self.clock.wait_until(killed_at)
        await self.engine.kill()
        await self.clock.wait_until(started_at)
        self.engine = self._start()

    async def _set_clock(self, moment: datetime, seconds: int) -> None:
        await self.clock.wait_until(moment)
        self.clock.shift += timedelta(seconds=seconds)

    async def _ask(self, moment: datetime) -> None:
        """Ask for a run of everything that an OLT has."""
        await self.clock.wait_until(moment)
        olt = self.luck.choice(self.olts)
        nodes = WorkflowNode.objects.filter(workflow__olt=olt)
        request_runs(nodes, now=self.clock.now())

    def _start(self) -> EngineRun:
        return EngineRun(self.devices, self.pace, self._note_new_grids)

    def _note_new_grids(self) -> None:
        """Note the first slot of each node that came back, or has another interval or offset than before."""
        nodes = WorkflowNode.objects.filter(enabled=True, workflow__olt__enabled=True, next_run_at__isnull=False)
        for node in nodes.only("interval_seconds", "offset_seconds", "next_run_at"):
            last, first = self.stints[node.id][-1], node.next_run_at
            is_new = (last.interval_seconds, last.offset_seconds) != (node.interval_seconds, node.offset_seconds)
            if first and (is_new or last.until):
                last.until = last.until or first
                self.stints[node.id].append(Stint(first, node.interval_seconds, node.offset_seconds))

    # Rows

    def _add_olt(self, number: int, jobs: dict[QueryType, SnmpJob], described: SnmpJob) -> Olt:
        olt = Olt.objects.create(
            name=f"olt-{number}", host="127.0.0.1", address="127.0.0.1", port=number + 1, community=Secret("public"),
            vendor="huawei_smartax",
        )  # fmt: skip
        workflow = Workflow.objects.create(olt=olt)
        for kind, (seconds, _) in JOBS.items():
            node = WorkflowNode(workflow=workflow, job=jobs[kind], interval_seconds=seconds)
            node.offset_seconds = self.luck.randrange(seconds)
            node.next_run_at = grid_of(node).next_after(START)
            node.save()
            self.stints[node.id] = [Stint(node.next_run_at, seconds, node.offset_seconds)]
            if kind is QueryType.DISCOVERY:
                member = WorkflowNode.objects.create(
                    workflow=workflow, job=described, interval_seconds=seconds, is_chain_node=True, master_node=node
                )
                self.members[member.id] = node.id
        return olt

    def _node(self, olt: Olt, kind: QueryType) -> WorkflowNode:
        return WorkflowNode.objects.select_related("job").get(workflow__olt=olt, job__slug=str(kind))


def _make_job(kind: QueryType, slug: str) -> SnmpJob:
    return SnmpJob.objects.create(name=slug, slug=slug, vendor="huawei_smartax", query_type=kind.value)


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
