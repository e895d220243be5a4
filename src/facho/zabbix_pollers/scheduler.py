"""The only scheduler: one bounded tick a second under a leader lease, and one at once when a run has ended."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from facho.executions.store import Active, load_active
from facho.executions.waiting import load_unfinished
from facho.polling.domain.clock import Clock
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.lease import LeaseWatch
from facho.snmp_jobs.store import pull_back_to_grid, put_all_on_grid
from facho.zabbix_pollers import store
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.recovery import end_dead_tries, release_as_seen

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0
RENEWALS_PER_LEASE = 3
# Who looks seldom sees late that a short lease is over.
LOOKS_PER_LEASE = 5
# Pages tell from the last renewal whether anyone polls.
MAX_RENEWAL_PAUSE_SECONDS = 5.0
# Many ticks: a busy database is no standstill.
FRESH_TICK_SECONDS = 30.0
# A claimed execution that nobody took is handed out again, and then given up.
SEND_AGAIN_SECONDS = 30.0
GIVE_UP_SECONDS = 90.0
# More than a clock that is being disciplined drifts between two ticks.
CLOCK_JUMP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Leases:
    """How long leases live unrenewed, and how long a datagram of a dead owner may keep its OLT at work."""

    lease_seconds: float
    packet_timeout_seconds: float

    @property
    def patience_seconds(self) -> float:
        """After how long without a renewal a run is dead."""
        return self.lease_seconds + self.packet_timeout_seconds

    @property
    def send_again_seconds(self) -> float:
        """After how long a claim that nobody took is handed out again; a claim is closed no longer than a lease."""
        return min(SEND_AGAIN_SECONDS, self.lease_seconds / 2)

    @property
    def give_up_seconds(self) -> float:
        """After how long a claim that nobody took is given up."""
        return min(GIVE_UP_SECONDS, self.lease_seconds * 1.5)


class Release(Protocol):
    """Ends executions as far as they are still as they were seen."""

    def __call__(self, runs: Sequence[Active], *, reason: str, now: datetime) -> int:
        """Return how many were ended."""


@dataclass(slots=True)
class ZabbixScheduler:
    """Evaluates what is due, again and again; it decides nothing itself and runs nothing itself."""

    pollers: PollerManager
    database: DatabaseGateway
    clock: Clock
    owner: str
    leases: Leases
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _leader_watch: LeaseWatch[str] = field(default_factory=LeaseWatch)
    _claim_watch: LeaseWatch[int] = field(default_factory=LeaseWatch)
    _led_at: float | None = None
    _ticked_at: float | None = None
    _sent_again: set[int] = field(default_factory=set)
    _clocks: tuple[datetime, float] | None = None

    def on_task_completed(self) -> None:
        """Plan again at once: a poller or an OLT has become free."""
        self._wake.set()

    async def scheduler_loop(self, stop: asyncio.Event) -> None:
        """Tick until told to stop; an error is logged and the next tick tries again."""
        await self.pollers.prepare()
        while not stop.is_set():
            try:
                await self.tick()
            except Exception:  # a bad row or a lost database must not end the scheduling of all others
                logger.exception("scheduler.tick_failed")
            await self._wait()

    async def tick(self) -> int:
        """Do one bounded round of work if this process leads; returns how many nodes started."""
        if not await self.leads():
            # Who only begins to watch when the leader is dead would keep its OLTs closed for a second lease.
            self._watch(await self.database.run(load_active))
            self._clocks = None
            return 0
        await self._look_at_clock()
        unfinished = await self.database.run(load_unfinished, self.clock.now())
        await self._look_after(unfinished.active)
        started = await self.pollers.start_due_nodes(unfinished, self.clock.now())
        self._ticked_at = self.clock.monotonic()
        return started

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(min(TICK_SECONDS, self.leases.lease_seconds / LOOKS_PER_LEASE)):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    @property
    def is_leading(self) -> bool:
        """Whether this process led at its last tick, and its lease cannot be over yet."""
        return self._led_at is not None and self.clock.monotonic() - self._led_at < self.leases.lease_seconds

    @property
    def is_scheduling(self) -> bool:
        """Whether this process leads and a whole tick of it has just gone well: a lease alone starts no node."""
        is_fresh = self._ticked_at is not None and self.clock.monotonic() - self._ticked_at < FRESH_TICK_SECONDS
        return is_fresh and self.is_leading

    async def leads(self) -> bool:
        """Keep the lead, or take it when nobody has it or its holder stood still for a lease."""
        began_at = self.clock.monotonic()
        if self._led_at is not None and began_at - self._led_at < self._renewal_pause:
            return True
        if await self.database.run(store.renew_leadership, self.owner, now=self.clock.now()):
            self._led_at = began_at
            return True
        self._led_at = None
        former, counter = await self.database.run(store.load_leader_counter)
        now = self.clock.monotonic()
        self._leader_watch.observe({former: counter}, monotonic=now)
        if not self._leader_watch.dead([former], after_seconds=self.leases.lease_seconds, monotonic=now):
            return False
        logger.warning("scheduler.takes_over from=%s", former)
        return await self.database.run(
            store.take_leadership, self.owner, former=former, counter=counter, now=self.clock.now()
        )

    @property
    def _renewal_pause(self) -> float:
        """How long a renewal is good for: the lead is shown to everyone often enough, and not at every tick."""
        return min(self.leases.lease_seconds / RENEWALS_PER_LEASE, MAX_RENEWAL_PAUSE_SECONDS)

    async def _look_at_clock(self) -> None:
        """Put everything on the grid again when wall time jumped, so that nothing bursts or stalls."""
        wall, monotonic = self.clock.now(), self.clock.monotonic()
        before, self._clocks = self._clocks, (wall, monotonic)
        if before is None:
            # The clock may have been set back while nobody led.
            await self.database.run(pull_back_to_grid, wall)
            return
        jump = (wall - before[0]).total_seconds() - (monotonic - before[1])
        if abs(jump) > CLOCK_JUMP_SECONDS:
            logger.warning("clock.jumped seconds=%.1f", jump)
            await self.database.run(put_all_on_grid, wall)

    async def _look_after(self, active: Sequence[Active]) -> None:
        """Free what died, stop what shall stop, hand out again what nobody took."""
        self._watch(active)
        pending = [run for run in active if run.status is ExecutionState.PENDING]
        running = [run for run in active if run.status is ExecutionState.RUNNING]
        dead = self._still_for(running, self.leases.patience_seconds)
        await self._release(end_dead_tries, dead, "its owner stopped renewing")
        given_up = self._still_for(pending, self.leases.give_up_seconds)
        await self._release(release_as_seen, given_up, "no worker took it")
        await self._release(release_as_seen, [run for run in pending if run.wants_to_stop], "cancelled")
        self._send_again(self._still_for(pending, self.leases.send_again_seconds))
        for run in running:
            if run.wants_to_stop:
                self.pollers.cancel(run.execution_id)

    def _watch(self, active: Sequence[Active]) -> None:
        counters = {run.execution_id: run.lease_counter for run in active}
        self._claim_watch.observe(counters, monotonic=self.clock.monotonic())

    def _still_for(self, runs: Sequence[Active], seconds: float) -> list[Active]:
        """Return those whose counter nobody raised for so long."""
        ids = [run.execution_id for run in runs]
        dead = set(self._claim_watch.dead(ids, after_seconds=seconds, monotonic=self.clock.monotonic()))
        return [run for run in runs if run.execution_id in dead]

    async def _release(self, release: Release, runs: Sequence[Active], reason: str) -> None:
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
