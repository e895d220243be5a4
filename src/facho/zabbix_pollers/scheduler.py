"""The only scheduler: one bounded tick a second under a leader lease, and one at once when a run has ended."""

import asyncio
import logging
from dataclasses import dataclass, field

from facho.executions.store import load_lease_counters
from facho.polling.domain.clock import Clock
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.lease import LeaseWatch
from facho.zabbix_pollers import store
from facho.zabbix_pollers.poller_manager import PollerManager

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0


@dataclass(slots=True)
class ZabbixScheduler:
    """Evaluates what is due, again and again; it decides nothing itself and runs nothing itself."""

    pollers: PollerManager
    database: DatabaseGateway
    clock: Clock
    owner: str
    lease_seconds: float
    # A datagram that left just before its sender died may keep the OLT at work for this long.
    packet_timeout_seconds: float
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _leader_watch: LeaseWatch[str] = field(default_factory=LeaseWatch)
    _claim_watch: LeaseWatch[int] = field(default_factory=LeaseWatch)

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
        if not await self._leads():
            return 0
        await self._recover()
        return await self.pollers.start_due_nodes(self.clock.now())

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    async def _leads(self) -> bool:
        if await self.database.run(store.renew_leadership, self.owner, now=self.clock.now()):
            return True
        former, counter = await self.database.run(store.load_leader_counter)
        self._leader_watch.observe({former: counter}, monotonic=self.clock.monotonic())
        if not self._leader_watch.dead([former], after_seconds=self.lease_seconds, monotonic=self.clock.monotonic()):
            return False
        logger.warning("scheduler.takes_over from=%s", former)
        return await self.database.run(
            store.take_leadership, self.owner, former=former, counter=counter, now=self.clock.now()
        )

    async def _recover(self) -> None:
        """Free what died: an active execution whose lease counter stood still for the lease and a packet's time."""
        counters = await self.database.run(load_lease_counters)
        now = self.clock.monotonic()
        self._claim_watch.observe(counters, monotonic=now)
        patience = self.lease_seconds + self.packet_timeout_seconds
        dead = self._claim_watch.dead(counters, after_seconds=patience, monotonic=now)
        if dead:
            logger.warning("executions.orphaned ids=%s", dead)
            await self.database.run(
                store.release_orphans, dead, reason="its owner stopped renewing", now=self.clock.now()
            )
