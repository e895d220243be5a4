"""What the engine does in the background: coordinates, recognises OLTs, sends alerts, tidies the database."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from facho.alerts.conditions import CONDITIONS
from facho.alerts.delivery import Delivery
from facho.alerts.engine import run_pass
from facho.alerts.http_request import Heartbeat
from facho.alerts.monthly import write_reports
from facho.alerts.sender import Reach
from facho.core.processes.leader_watch import WATCHED
from facho.core.wiring import OltBusy, Parts, probe, recognise_olt
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.retention import RETENTIONS, delete_expired
from facho.executions.processes import load_still_workers
from facho.executions.runner import Executor
from facho.executions.store import claim_probes, end_abandoned
from facho.hosts.models import Olt
from facho.hosts.store import schedule_probe
from facho.infrastructure.gateway import ThreadGateway
from facho.neighbours.webhook_delivery import WebhookSender
from facho.neighbours.zabbix import ZabbixSender, load_values
from facho.onus.compaction import CompactionLimits, compact
from facho.onus.outages import follow_silence, has_silence
from facho.plant.days import judge_days
from facho.plant.months import compute_some, is_any_begun
from facho.plant.watch import LightWatcher
from facho.polling.domain.planning import DEFAULT_GROUP
from facho.snmp_jobs.store import load_intervals
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.read_model import save_poller_stats
from facho.zabbix_pollers.store import follow_probe, load_asked_for, load_unidentified

logger = logging.getLogger(__name__)

RECOGNITION_SECONDS = 30.0
# It is not urgent, but an OLT that is polled all the time has to be asked between two runs.
CLAIM_SECONDS = 10.0
PROBE_LOOK_SECONDS = 5.0
PROBES_AT_ONCE = 10
ABANDONED_SECONDS = 5.0
STATISTICS_SECONDS = 60.0
SILENCE_SECONDS = 5.0
# Polls are minutes apart, and a finding needs two of them.
LIGHT_SECONDS = 30.0
# A month that was asked for begins at the next look; whether another is due changes by the day.
REPORT_SECONDS = 5.0
MONTH_SECONDS = 60.0
COMPACTION_SECONDS = 60.0
# Enough for a backlog to shrink; whether the work is still ours is asked between two rounds only.
COMPACTION_PIECES = 200
# What is wrong is seen by polls that are minutes apart.
ALERT_SECONDS = 15.0
DELIVERY_SECONDS = 2.0
HEARTBEAT_SECONDS = 60.0
ZABBIX_SECONDS = 60.0
CLEANUP_SECONDS = 600.0
CLEANUP_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """Context of the background tasks; of several processes only the one that leads runs them."""

    parts: Parts
    stop: asyncio.Event
    is_wanted: Callable[[], bool] = lambda: True
    # Executor of probes; None: this process.
    executor: Executor | None = None
    # Whether nodes are really being started.
    is_scheduling: Callable[[], bool] = lambda: True

    @property
    def holds(self) -> bool:
        """Whether only tasks that report trouble run: the disk is full, or the database damaged."""
        return self.parts.storage.holds

    def may_go_on(self) -> bool:
        """Whether a long background task may continue: this process still leads, and was not asked to stop."""
        return self.is_wanted() and not self.stop.is_set()


async def housekeeping_loop(chores: Housekeeping) -> None:
    await asyncio.gather(
        coordinating(chores),
        probing(chores),
        _repeat(end_abandoned_runs, chores, ABANDONED_SECONDS),
        _repeat(report_silence, chores, SILENCE_SECONDS),
        compacting(chores),
        watching_light(chores),
        reporting(chores),
        _repeat(save_statistics, chores, STATISTICS_SECONDS),
        cleaning_up(chores),
        alerting(chores),
        delivering(chores),
        serving_webhooks(chores),
        sending_to_zabbix(chores),
        beating(chores),
    )


@asynccontextmanager
async def own_thread(chores: Housekeeping) -> AsyncIterator[ThreadGateway]:
    """Give a long background task its own thread, so that no claim waits behind it."""
    aside = chores.parts.database.aside()
    try:
        yield aside
    finally:
        await aside.close()


async def coordinating(chores: Housekeeping) -> None:
    """Let the coordinator look every few seconds, in a thread of its own: no claim waits behind its long look."""
    coordinator = ExecutionCoordinator()
    async with own_thread(chores) as thread:

        async def coordinate(parts: Parts) -> None:
            await thread.run(coordinator.run_pass, parts.clock.now())

        await _repeat(coordinate, chores, settings.FACHO_COORDINATOR_SECONDS)


async def compacting(chores: Housekeeping) -> None:
    """Move history to where it is small, in a thread of its own; each piece is one short transaction."""
    async with own_thread(chores) as thread:

        async def compact_history(parts: Parts) -> None:
            for _ in range(COMPACTION_PIECES):
                if chores.stop.is_set() or not await thread.run(compact, parts.clock.now(), CompactionLimits()):
                    break

        await _repeat(compact_history, chores, COMPACTION_SECONDS)


async def watching_light(chores: Housekeeping) -> None:
    """Look for what light shows about the fibre, in a thread of its own; the next leader looks at the same polls."""
    watcher = LightWatcher()
    async with own_thread(chores) as thread:

        async def watch_light(parts: Parts) -> None:
            for work in (watcher.look, judge_days):
                left = 1
                while left and chores.may_go_on():
                    left = await thread.run(work, parts.clock.now())

        await _repeat(watch_light, chores, LIGHT_SECONDS)


async def reporting(chores: Housekeeping) -> None:
    """Compute the figures of months in a thread of its own, some ports at a time; each is one short transaction."""
    look_at = 0.0
    async with own_thread(chores) as thread:

        async def compute_months(parts: Parts) -> None:
            nonlocal look_at
            began_at = parts.clock.monotonic()
            if began_at < look_at and not await thread.run(is_any_begun):
                return
            look_at = began_at + MONTH_SECONDS
            left = 1
            while left and chores.may_go_on():
                left = await thread.run(compute_some, parts.clock.now())
            await thread.run(write_reports, parts.clock.now())

        await _repeat(compute_months, chores, REPORT_SECONDS)


async def cleaning_up(chores: Housekeeping) -> None:
    """Delete expired rows in a thread of its own, table by table in batches; each is one short transaction."""
    async with own_thread(chores) as thread:

        async def clean_up(parts: Parts) -> None:
            for retention in RETENTIONS:
                deleted = CLEANUP_BATCH
                while deleted == CLEANUP_BATCH and chores.may_go_on():
                    deleted = await thread.run(delete_expired, retention, parts.clock.now(), CLEANUP_BATCH)
                    if deleted:
                        logger.info("rows.expired table=%s count=%s", retention.model, deleted)

        await _repeat(clean_up, chores, CLEANUP_SECONDS)


async def alerting(chores: Housekeeping) -> None:
    """Let the rules look for what is wrong, in a thread of its own; what they write is one short transaction."""
    async with own_thread(chores) as thread:

        async def raise_alerts(parts: Parts) -> None:
            # Only a process that really leads may resolve this alert: others would undo what the watch reports.
            left_out = frozenset() if await _all_schedule(chores) else WATCHED
            await thread.run(run_pass, parts.clock.now(), CONDITIONS.keys() - left_out)

        await _repeat(raise_alerts, chores, ALERT_SECONDS, even_held=True)


async def delivering(chores: Housekeeping) -> None:
    """Send the messages that wait; a try in progress when the process stops may still end."""
    parts, reach = chores.parts, Reach(settings.FACHO_WEBHOOK_ALLOW)
    async with own_thread(chores) as thread:
        delivery = Delivery(parts.database, parts.clock, reach, chores.may_go_on, reports=thread)

        async def deliver_messages(_parts: Parts) -> None:
            await delivery.look()

        try:
            await _repeat(deliver_messages, chores, DELIVERY_SECONDS, even_held=True)
        finally:
            await delivery.close()


async def serving_webhooks(chores: Housekeeping) -> None:
    """Send events to programs that want them, in a thread of its own: no claim waits while a batch is put together."""
    async with own_thread(chores) as thread:
        sender = WebhookSender(thread, chores.parts.clock, Reach(settings.FACHO_WEBHOOK_ALLOW), chores.may_go_on)

        async def send_events(_parts: Parts) -> None:
            await sender.look()

        try:
            await _repeat(send_events, chores, DELIVERY_SECONDS)
        finally:
            await sender.close()


async def sending_to_zabbix(chores: Housekeeping) -> None:
    """Send values of OLTs to Zabbix every minute, if wanted; they are loaded in a thread of their own."""
    if not settings.FACHO_ZABBIX_SERVER:
        return
    sender = ZabbixSender(settings.FACHO_ZABBIX_SERVER)
    async with own_thread(chores) as thread:

        async def send_values(parts: Parts) -> None:
            now = parts.clock.now()
            await sender.send(await thread.run(load_values, now, settings.FACHO_ZABBIX_HOST_PREFIX), now)

        await _repeat(send_values, chores, ZABBIX_SECONDS)


async def beating(chores: Housekeeping) -> None:
    """Call the heartbeat address while nodes are really being started."""
    if not settings.FACHO_HEARTBEAT_URL:
        return
    heartbeat = Heartbeat(settings.FACHO_HEARTBEAT_URL)

    async def call_heartbeat(_parts: Parts) -> None:
        if await _all_schedule(chores):
            await heartbeat.beat()

    await _repeat(call_heartbeat, chores, HEARTBEAT_SECONDS)


async def _all_schedule(chores: Housekeeping) -> bool:
    """Return whether this process and the other engines, if there are, really start nodes."""
    parts = chores.parts
    return chores.is_scheduling() and (
        parts.shard.is_whole or await parts.database.run(load_is_polling, parts.clock.now())
    )


async def probing(chores: Housekeeping) -> None:
    """Probe what has to be probed: here, or by messages to the workers that reach the OLTs."""
    executor = chores.executor
    if executor is None:
        await asyncio.gather(
            _repeat(recognise_new_olts, chores, RECOGNITION_SECONDS),
            _repeat(probe_suspended_olts, chores, PROBE_LOOK_SECONDS),
        )
        return

    async def send_probes(parts: Parts) -> None:
        now = parts.clock.now()
        wanted = await parts.database.run(load_wanted_probes, now)
        claims = await parts.database.run(claim_probes, wanted, at_once=PROBES_AT_ONCE, owner=parts.owner, now=now)
        for claim in claims:
            executor.start(claim.execution_id, claim.token)

    await asyncio.gather(
        _repeat(send_probes, chores, PROBE_LOOK_SECONDS), _repeat(report_idle_workers, chores, STATISTICS_SECONDS)
    )


def load_wanted_probes(now: datetime) -> dict[int, str]:
    """Return the OLTs to be asked who they are or whether they are back, of groups that have pollers."""
    wanted = {*load_unidentified(now), *load_asked_for(now)}
    olts = Olt.objects.filter(id__in=wanted).order_by("id").values_list("id", "poller_group")
    known = settings.FACHO_POLLER_GROUPS
    if not known:
        return dict.fromkeys((olt_id for olt_id, _ in olts), DEFAULT_GROUP)
    return {olt_id: group for olt_id, group in olts if group == DEFAULT_GROUP or group in known}


async def report_idle_workers(parts: Parts) -> None:
    """Say which workers live and complete nothing while others of their groups do."""
    for worker in await parts.database.run(load_still_workers):
        logger.warning("worker.stands_still owner=%s", worker.owner)


async def recognise_new_olts(parts: Parts) -> None:
    """Probe the OLTs not identified yet; one that is busy or silent has its next turn later."""

    async def recognise(olt_id: int) -> None:
        report = await recognise_olt(parts, olt_id, wait_seconds=CLAIM_SECONDS)
        if not report.answered:
            await parts.database.run(schedule_probe, olt_id, parts.clock.now())

    await _for_each(recognise, await _load_own(load_unidentified, parts))


async def probe_suspended_olts(parts: Parts) -> None:
    """Ask OLTs with suspended nodes whether they are back; an answer returns all their nodes to the schedule."""

    async def look(olt_id: int) -> None:
        report = await probe(parts, olt_id, wait_seconds=0)
        await parts.database.run(follow_probe, olt_id, answered=report.answered, now=parts.clock.now())

    await _for_each(look, await _load_own(load_asked_for, parts))


async def _load_own(load: Callable[[datetime], list[int]], parts: Parts) -> list[int]:
    """Load OLTs, and keep those that this process serves."""
    return [olt_id for olt_id in await parts.database.run(load, parts.clock.now()) if parts.shard.holds(olt_id)]


async def _for_each(ask: Callable[[int], Awaitable[None]], olt_ids: Sequence[int]) -> None:
    """Ask OLTs in parallel, so that silent ones delay no others; a failure concerns its own OLT only."""
    places = asyncio.Semaphore(PROBES_AT_ONCE)

    async def in_turn(olt_id: int) -> None:
        async with places:
            await ask(olt_id)

    results = await asyncio.gather(*map(in_turn, olt_ids), return_exceptions=True)
    for olt_id, result in zip(olt_ids, results, strict=True):
        if result is not None and not isinstance(result, OltBusy):
            logger.error("housekeeping.probe_failed olt=%s", olt_id, exc_info=result)


async def end_abandoned_runs(parts: Parts) -> None:
    """End runs that wait to continue although their node or OLT was disabled or deleted meanwhile."""
    await parts.database.run(end_abandoned, now=parts.clock.now())


async def report_silence(parts: Parts) -> None:
    """Turn OLTs that do not answer into outages, and end those of OLTs that do."""
    now = parts.clock.now()
    if await parts.database.run(has_silence):
        intervals = await parts.database.run(load_intervals, now)
        await parts.database.run(follow_silence, intervals, now)


async def save_statistics(parts: Parts) -> None:
    await parts.database.run(save_poller_stats, parts.clock.now())


async def _repeat(
    chore: Callable[[Parts], Awaitable[None]], chores: Housekeeping, pause_seconds: float, *, even_held: bool = False
) -> None:
    while not chores.stop.is_set():
        try:
            if chores.is_wanted() and (even_held or not chores.holds):
                await chore(chores.parts)
        except Exception:  # a loop guard: a failed task is tried again, and the others continue
            logger.exception("housekeeping.failed chore=%s", chore.__name__)
        try:
            async with asyncio.timeout(pause_seconds):
                await chores.stop.wait()
        except TimeoutError:
            pass
