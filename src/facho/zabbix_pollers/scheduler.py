"""The scheduler: one bounded tick a second under a leader lease, and one at once when a run has ended."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from facho.executions.store import Active, Unfinished, load_active, load_answer_seconds
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.standstill import Standstill
from facho.infrastructure.storage import Storage
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.lease import WHOLE, HeldLease, LeaseWatch, Shard
from facho.polling.domain.ports import Clock, ClockReading, DatabaseGateway
from facho.snmp_jobs.store import pull_back_to_grid, put_all_on_grid
from facho.zabbix_pollers import store
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.store import end_dead_tries, release_as_seen

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0
RENEWALS_PER_LEASE = 3
# A process that checks seldom sees late that a short lease is over.
LOOKS_PER_LEASE = 5
# Pages see from the last renewal whether any process polls.
MAX_RENEWAL_PAUSE_SECONDS = 5.0
# Many ticks: a busy database is no standstill.
FRESH_TICK_SECONDS = 30.0
# A claimed execution that was not taken is handed out again, and then given up.
SEND_AGAIN_SECONDS = 30.0
GIVE_UP_SECONDS = 90.0
# More than a clock that is being disciplined drifts between two ticks.
CLOCK_JUMP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Leases:
    """How long leases live unrenewed, and how long at most an answer is waited for."""

    lease_seconds: float
    packet_timeout_seconds: float

    @property
    def send_again_seconds(self) -> float:
        """After how long a claim that was not taken is handed out again; a claim is closed no longer than a lease."""
        return min(SEND_AGAIN_SECONDS, self.lease_seconds / 2)

    @property
    def give_up_seconds(self) -> float:
        return min(GIVE_UP_SECONDS, self.lease_seconds * 1.5)


@dataclass(slots=True)
class ZabbixScheduler:
    """Evaluates what is due, again and again; it decides nothing itself and runs nothing itself."""

    pollers: PollerManager
    database: DatabaseGateway
    clock: Clock
    owner: str
    leases: Leases
    # How the owners begin that are known to be dead: only the work that they left at an OLT has to be waited for.
    dead_owners: str | None = None
    storage: Storage = field(default_factory=lambda: Storage(reserve=None))
    # Of several engines each schedules its own OLTs, under a lease of its own.
    shard: Shard = WHOLE
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _leader_watch: LeaseWatch[str] = field(default_factory=LeaseWatch)
    _claim_watch: LeaseWatch[int] = field(default_factory=LeaseWatch)
    _lead: HeldLease | None = None
    _led_since: float | None = None
    _reported: Standstill | None = None
    _has_pollers: bool = False
    _ticked_at: float | None = None
    _sent_again: set[int] = field(default_factory=set)
    # Of runs without an owner: how long an OLT may work on the last question.
    _answer_seconds: dict[int, float] = field(default_factory=dict)
    _clocks: tuple[datetime, float] | None = None

    def on_task_completed(self) -> None:
        """Plan again at once: a poller or an OLT has become free."""
        self._wake.set()

    async def scheduler_loop(self, stop: asyncio.Event) -> None:
        """Tick until stopped; an error is logged and the next tick tries again."""
        while not stop.is_set():
            try:
                await self.prepare()
                await self.tick()
            except Exception:  # a bad row or a lost database must not end the scheduling of all others
                logger.exception("scheduler.tick_failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(TICK_SECONDS, self.leases.lease_seconds / LOOKS_PER_LEASE)):
                    await self._wake.wait()
            self._wake.clear()

    async def tick(self) -> int:
        """Do one bounded round of work if this process leads; returns how many nodes started."""
        if not await self.leads():
            # Watch before taking over: starting only then would keep the dead leader's OLTs closed for a second lease.
            self._watch(await self.database.run(load_active, in_shard("olt_id", self.shard)))
            self._clocks = None
            return 0
        await self._look_at_clock()
        unfinished, started = await self.pollers.look_and_start(self.clock.now(), may_start=self._may_start)
        if started is None:
            await self._end_what_is_over(unfinished.active)
            # Nothing is read that cannot be stored; running executions may end, and the lead is kept.
            started = 0 if self.storage.holds else await self.pollers.start_due_nodes(unfinished, self.clock.now())
        self._ticked_at = self.clock.monotonic()
        return started

    def _may_start(self, unfinished: Unfinished) -> bool:
        """Return whether all runs are in order, so that what is due can start with the look at them, in one call."""
        self._watch(unfinished.active)
        runs = {state: [run for run in unfinished.active if run.status is state] for state in ExecutionState}
        pending, running = runs[ExecutionState.PENDING], runs[ExecutionState.RUNNING]
        return not (
            self.storage.holds
            or any(run.wants_to_stop or self._is_proven_dead(run) for run in unfinished.active)
            or self._still_for(pending, self.leases.send_again_seconds)
            or self._still_for(running, self.leases.lease_seconds)
        )

    async def _end_what_is_over(self, active: Sequence[Active]) -> None:
        """Free dead runs, stop cancelled ones, send again what no worker took."""
        pending = [run for run in active if run.status is ExecutionState.PENDING]
        running = [run for run in active if run.status is ExecutionState.RUNNING]
        await self._release(end_dead_tries, await self._find_dead(running), "its owner is gone")
        given_up = self._still_for(pending, self.leases.give_up_seconds)
        await self._release(release_as_seen, given_up, "no worker took it")
        await self._release(release_as_seen, [run for run in pending if run.wants_to_stop], "cancelled")
        self._send_again(self._still_for(pending, self.leases.send_again_seconds))
        for run in running:
            if run.wants_to_stop:
                self.pollers.cancel(run.execution_id)

    async def prepare(self) -> None:
        """Have the pollers that the settings name; asked again, nothing is left to do."""
        if not self._has_pollers:
            await self.pollers.prepare()
            self._has_pollers = True

    @property
    def is_leading(self) -> bool:
        """Whether this process led at its last tick, and its lease cannot be over yet."""
        return self._lead is not None and self._lead.is_certain(self.clock.reading())

    @property
    def is_scheduling(self) -> bool:
        """Whether this process leads and a whole tick of it has just gone well: a lease alone starts no node."""
        is_fresh = self._ticked_at is not None and self.clock.monotonic() - self._ticked_at < FRESH_TICK_SECONDS
        return is_fresh and self.is_leading and self.storage.trouble is None

    @property
    def standstill(self) -> Standstill | None:
        """Why this process, though it leads, starts nothing."""
        if trouble := self.storage.trouble:
            return trouble
        since = max((at for at in (self._ticked_at, self._led_since) if at is not None), default=None)
        is_late = since is not None and self.clock.monotonic() - since >= FRESH_TICK_SECONDS
        return Standstill.TICKS_FAIL if is_late else None

    async def leads(self) -> bool:
        """Keep the lead, or take it when it is free or its holder did not renew for a lease."""
        began_at, standstill = self.clock.reading(), self.standstill
        if standstill is self._reported and self._lead is not None and self._is_fresh(self._lead, began_at):
            return True
        if await self.database.run(
            store.renew_leadership, self.owner, now=self.clock.now(), standstill=standstill or "", shard=self.shard
        ):
            self._lead, self._reported = HeldLease(self.leases.lease_seconds, began_at), standstill
            self._led_since = began_at.monotonic if self._led_since is None else self._led_since
            return True
        self._lead = self._led_since = None
        leader = await self.database.run(store.load_leader, self.shard)
        former, counter = leader.owner, leader.counter
        now = self.clock.monotonic()
        self._leader_watch.observe({former: counter}, monotonic=now)
        if not self._leader_watch.dead([former], after_seconds=self.leases.lease_seconds, monotonic=now):
            return False
        logger.warning("scheduler.takes_over from=%s", former)
        return await self.database.run(
            store.take_leadership,
            self.owner,
            former=former,
            counter=counter,
            now=self.clock.now(),
            shard=self.shard,
        )

    def _is_fresh(self, lead: HeldLease, now: ClockReading) -> bool:
        """Return whether the lead need not be renewed yet: it is shown often enough, and not at every tick."""
        pause = min(self.leases.lease_seconds / RENEWALS_PER_LEASE, MAX_RENEWAL_PAUSE_SECONDS)
        return now.monotonic - lead.renewed_at.monotonic < pause and lead.is_certain(now)

    async def _look_at_clock(self) -> None:
        """Put everything on the grid again when wall time jumped, so that nothing bursts or stalls."""
        wall, monotonic = self.clock.now(), self.clock.monotonic()
        before, self._clocks = self._clocks, (wall, monotonic)
        if before is None:
            # The clock may have been set back while no process led.
            await self.database.run(pull_back_to_grid, wall, self.shard)
            return
        jump = (wall - before[0]).total_seconds() - (monotonic - before[1])
        if abs(jump) > CLOCK_JUMP_SECONDS:
            logger.warning("clock.jumped seconds=%.1f", jump)
            await self.database.run(put_all_on_grid, wall, self.shard)

    async def _find_dead(self, running: Sequence[Active]) -> list[Active]:
        """Return what has no owner any more and left nothing at its OLT that may still be worked on."""
        proven = [run for run in running if self._is_proven_dead(run)]
        silent = proven + [run for run in self._still_for(running, self.leases.lease_seconds) if run not in proven]
        unknown = [run.execution_id for run in silent if run.execution_id not in self._answer_seconds]
        known = {run.execution_id: self._answer_seconds.get(run.execution_id, 0.0) for run in silent}
        if unknown:
            known |= await self.database.run(load_answer_seconds, unknown, self.leases.packet_timeout_seconds)
        self._answer_seconds = known
        # Leave the OLT alone while it may still work on the last request; add a lease if the owner may still send.
        lease = self.leases.lease_seconds
        patience = {run.execution_id: known[run.execution_id] + (0.0 if run in proven else lease) for run in silent}
        return [run for run in silent if self._still_for([run], patience[run.execution_id])]

    def _is_proven_dead(self, run: Active) -> bool:
        return self.dead_owners is not None and run.owner != self.owner and run.owner.startswith(self.dead_owners)

    def _watch(self, active: Sequence[Active]) -> None:
        counters = {run.execution_id: run.lease_counter for run in active}
        self._claim_watch.observe(counters, monotonic=self.clock.monotonic())

    def _still_for(self, runs: Sequence[Active], seconds: float) -> list[Active]:
        """Return those whose counter was not raised for that time."""
        ids = [run.execution_id for run in runs]
        dead = set(self._claim_watch.dead(ids, after_seconds=seconds, monotonic=self.clock.monotonic()))
        return [run for run in runs if run.execution_id in dead]

    async def _release(self, release: Callable[..., int], runs: Sequence[Active], reason: str) -> None:
        if not runs:
            return
        ids = [run.execution_id for run in runs]
        logger.warning("executions.released ids=%s reason=%s", ids, reason)
        if await self.database.run(release, runs, reason=reason, now=self.clock.now()):
            # What was planned with took these OLTs for busy: plan again at once.
            self._wake.set()

    def _send_again(self, runs: Sequence[Active]) -> None:
        self._sent_again &= {run.execution_id for run in runs}
        for run in runs:
            # What has no node was claimed by a command, which alone knows what to ask.
            if run.node_id is not None and run.execution_id not in self._sent_again:
                self._sent_again.add(run.execution_id)
                self.pollers.send_again(run.execution_id, run.token)
