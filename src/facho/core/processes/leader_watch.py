"""Looks, in processes that do not lead, whether any process polls: a scheduler that is gone cannot report it.

A leader is alive while its counter moves, timed by this process's own clock, as when processes compete for the lead:
wall clocks of two machines may differ. A leader that starts nothing writes the reason into its lease, if it can.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from django.conf import settings
from django.db import Error, transaction

from facho.alerts.condition import Stall
from facho.alerts.conditions.no_leader import NO_LEADER
from facho.alerts.delivery import Delivery
from facho.alerts.engine import run_pass
from facho.alerts.sender import Reach
from facho.core.health import Seen, judge
from facho.core.product import OperatorError, refuse_newer
from facho.executions.processes import VERSION, ProcessReport, forget_process, load_other_versions, save_process
from facho.infrastructure.gateway import ThreadGateway, background
from facho.infrastructure.standstill import Standstill, standstill_of
from facho.polling.domain.lease import LeaseWatch, Shard
from facho.polling.domain.ports import Clock
from facho.zabbix_pollers.activity import LEADER_SILENCE, is_led, our_shards
from facho.zabbix_pollers.store import Leader, load_leaders

logger = logging.getLogger(__name__)

# One row is read; a readiness check needs the answer within seconds.
LOOK_SECONDS = 2.0
# A leader renews every five seconds at least; one that is late may be unable to write, which a write from here shows.
DOUBT_SECONDS = 10.0
ALERT_SECONDS = 15.0
VERSION_LOOK_SECONDS = 10.0
# The leader checks everything else: without one, the rows are old.
WATCHED = frozenset({NO_LEADER.code})


class LeaderWatch:
    """Alerts that nothing is polled and why, or which of several engines polls nothing."""

    def __init__(self, database: ThreadGateway, clock: Clock, seen: Seen | None = None) -> None:
        self._database = database
        self._clock = clock
        self._seen = seen or Seen()
        self._shards = our_shards()
        self._lease: LeaseWatch[str] = LeaseWatch()
        self._leaders: dict[Shard, Leader] = {}
        self._moved: set[Shard] = set()
        # Certainly without a leader.
        self._silent: list[Shard] = []
        self._stall: Stall | None = None
        self._alerted_at: float | None = None
        self._delivery = Delivery(database, clock, Reach(settings.FACHO_WEBHOOK_ALLOW), lambda: self._is_unattended)

    async def look(self) -> None:
        """Look once: at the leases, and with a write of our own when something seems wrong."""
        reason, engines = await self._judge()
        seen = self._seen
        seen.is_watched, seen.standstill, seen.engines, seen.noticed = True, reason, engines, None
        # Remember since when, and for an alert only what is certain: a leader not seen yet may be about to come.
        is_leaderless = reason in (Standstill.NO_LEADER, Standstill.ENGINE_GONE)
        if reason is None or (is_leaderless and not self._silent):
            self._stall = None
        elif self._stall is None:
            late = LEADER_SILENCE if is_leaderless else LEADER_SILENCE * 0
            self._stall = Stall(self._clock.now() - late, reason, engines)
        else:
            self._stall = Stall(self._stall.since, reason, engines)
        monotonic = self._clock.monotonic()
        if self._stall and (self._alerted_at is None or monotonic - self._alerted_at >= ALERT_SECONDS):
            self._alerted_at = monotonic
            await self._database.run(run_pass, self._clock.now(), WATCHED, stall=self._stall)
            if self._is_unattended:
                await self._delivery.look()

    @property
    def _is_unattended(self) -> bool:
        """Whether the engine that runs the housekeeping, and with it sends messages, is gone."""
        return self._shards[0] in self._silent

    async def _judge(self) -> tuple[Standstill | None, str]:
        try:
            leaders = await self._database.run(load_leaders, self._shards)
            self._observe(leaders)
            storage = self._database.storage
            is_doubtful = self._seen.noticed or storage.trouble or self._still_for(DOUBT_SECONDS)
            is_reported = any(each.standstill for shard, each in leaders.items() if shard not in self._silent)
            if is_doubtful and not is_reported:
                await self._database.run(_try_to_write, self._clock.now())
                storage.forget()
        except Error as error:
            reason = standstill_of(error)
            if reason is None:
                raise
            # The leader cannot renew either; whether it is gone too shows when the storage is back.
            return reason, ""
        if storage.trouble and not is_reported:
            return storage.trouble, ""
        return judge(
            leaders, [shard for shard in self._shards if shard in self._silent or not self._is_believed(shard)]
        )

    def _observe(self, leaders: dict[Shard, Leader]) -> None:
        self._moved |= {shard for shard, seen in self._leaders.items() if seen.counter != leaders[shard].counter}
        self._leaders = leaders
        counters = {self._key(shard): leader.counter for shard, leader in leaders.items()}
        self._lease.observe(counters, monotonic=self._clock.monotonic())
        self._silent = self._still_for(LEADER_SILENCE.total_seconds())

    def _still_for(self, seconds: float) -> list[Shard]:
        keys = {self._key(shard): shard for shard in self._leaders}
        return [keys[key] for key in self._lease.dead(keys, after_seconds=seconds, monotonic=self._clock.monotonic())]

    def _key(self, shard: Shard) -> str:
        return f"{shard} {self._leaders[shard].owner}"

    def _is_believed(self, shard: Shard) -> bool:
        """Return whether a leader that has not been watched for long is alive: it moved, or renewed just before."""
        return shard in self._moved or is_led(self._leaders[shard], self._clock.now())

    async def close(self) -> None:
        """Wait until messages in progress have arrived."""
        await self._delivery.close()


@transaction.atomic
def _try_to_write(now: datetime) -> None:
    """Write a row and roll it back: if the storage refuses it, it refuses everything."""
    probe = ProcessReport("probe", "", now, now)
    save_process(probe)
    forget_process(probe.owner)


@asynccontextmanager
async def watching(database: ThreadGateway, clock: Clock, seen: Seen | None = None) -> AsyncIterator[None]:
    """Look every few seconds while the block runs."""
    watch = LeaderWatch(database, clock, seen)
    try:
        async with background(_keep_looking(watch), "leader watch"):
            yield
    finally:
        await watch.close()


async def _keep_looking(watch: LeaderWatch) -> None:
    while True:
        try:
            await watch.look()
        except Exception:  # a loop guard: no other process reports that polling stopped
            logger.exception("leader_watch.failed")
        await asyncio.sleep(LOOK_SECONDS)


async def watch_version(database: ThreadGateway) -> None:
    """Stop this process once the database is newer than its code, and log which other versions also run on it."""
    logged: list[str] = []
    while True:
        try:
            await database.run(refuse_newer)
            others = await database.run(load_other_versions)
        except OperatorError as error:
            logger.critical("database.newer %s", " ".join(error.lines))
            os.kill(os.getpid(), signal.SIGTERM)
            return
        except Error:
            others = logged
        if others and others != logged:
            logger.warning("versions.differ here=%s others=%s", VERSION, ",".join(others))
        logged = others
        await asyncio.sleep(VERSION_LOOK_SECONDS)
