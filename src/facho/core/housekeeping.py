"""What the engine does beside scheduling: coordinates, recognises OLTs, tells what is wrong, tidies the database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from facho.alerts.delivery import Delivery
from facho.alerts.engine import run_pass
from facho.alerts.heartbeat import Heartbeat
from facho.alerts.models import Kind
from facho.alerts.ssrf import Reach
from facho.core.gateway import ThreadGateway
from facho.core.leader_watch import WATCHED
from facho.core.recognition import follow_probe, load_asked_for, load_unidentified, recognise_olt
from facho.core.silence import follow_silence
from facho.core.wiring import OltBusy, Parts, probe
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.retention import RETENTIONS, delete_expired
from facho.executions.executor import Executor
from facho.executions.processes import load_still_workers
from facho.executions.store import Claimed, claim_probes
from facho.executions.waiting import end_forsaken
from facho.hosts.models import Olt
from facho.hosts.store import schedule_probe
from facho.onus.compaction import Limits, compact
from facho.polling.domain.poller_groups import DEFAULT_GROUP
from facho.zabbix_pollers.statistics import save_poller_stats

logger = logging.getLogger(__name__)

COORDINATOR_SECONDS = 5.0
RECOGNITION_SECONDS = 30.0
# Nobody waits for it, but an OLT that is polled all the time has to be asked between two runs.
CLAIM_SECONDS = 10.0
PROBE_LOOK_SECONDS = 5.0
PROBES_AT_ONCE = 10
FORSAKEN_SECONDS = 5.0
STATISTICS_SECONDS = 60.0
SILENCE_SECONDS = 5.0
COMPACTION_SECONDS = 60.0
# Enough for a backlog to shrink; whether the work is still ours is asked between two rounds only.
COMPACTION_PIECES = 200
# What is wrong is seen by polls that are minutes apart.
ALERT_SECONDS = 15.0
DELIVERY_SECONDS = 2.0
HEARTBEAT_SECONDS = 60.0
CLEANUP_SECONDS = 600.0
CLEANUP_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class House:
    """Whose house is kept, until when, and whether it is ours to keep right now: of several processes one leads."""

    parts: Parts
    stop: asyncio.Event
    is_wanted: Callable[[], bool] = lambda: True
    # Who carries probes out; None: this process.
    executor: Executor | None = None
    # Whether nodes are really being started.
    is_scheduling: Callable[[], bool] = lambda: True

    def is_kept(self) -> bool:
        """Tell whether a long chore may go on: the house is still ours, and nobody has told us to stop."""
        return self.is_wanted() and not self.stop.is_set()


async def housekeeping_loop(house: House) -> None:
    """Do each chore at its own pace until told to stop."""
    await asyncio.gather(
        _coordinate(house),
        _probe(house),
        _repeat(end_forsaken_runs, house, FORSAKEN_SECONDS),
        _repeat(tell_silence, house, SILENCE_SECONDS),
        _compact(house),
        _repeat(save_statistics, house, STATISTICS_SECONDS),
        _clean_up(house),
        _alert(house),
        _deliver(house),
        _beat(house),
    )


async def _coordinate(house: House) -> None:
    """Let the coordinator look every few seconds, in a thread of its own: no claim waits behind its long look."""
    coordinator, aside = ExecutionCoordinator(), ThreadGateway(threads=1)

    async def coordinate(parts: Parts) -> None:
        await aside.run(coordinator.run_pass, parts.clock.now())

    try:
        await _repeat(coordinate, house, COORDINATOR_SECONDS)
    finally:
        await aside.close()


async def _compact(house: House) -> None:
    """Move history to where it is small, in a thread of its own; each piece is one short transaction."""
    aside = ThreadGateway(threads=1)

    async def compact_history(parts: Parts) -> None:
        for _ in range(COMPACTION_PIECES):
            if house.stop.is_set() or not await aside.run(compact, parts.clock.now(), Limits()):
                break

    try:
        await _repeat(compact_history, house, COMPACTION_SECONDS)
    finally:
        await aside.close()


async def _clean_up(house: House) -> None:
    """Delete expired rows in a thread of its own, table by table in batches; each is one short transaction."""
    aside = ThreadGateway(threads=1)

    async def clean_up(parts: Parts) -> None:
        for retention in RETENTIONS:
            deleted = CLEANUP_BATCH
            while deleted == CLEANUP_BATCH and house.is_kept():
                deleted = await aside.run(delete_expired, retention, parts.clock.now(), CLEANUP_BATCH)
                if deleted:
                    logger.info("rows.expired table=%s count=%s", retention.model, deleted)

    try:
        await _repeat(clean_up, house, CLEANUP_SECONDS)
    finally:
        await aside.close()


async def _alert(house: House) -> None:
    """Let the rules look for what is wrong, in a thread of its own; what they write is one short transaction."""
    aside = ThreadGateway(threads=1)

    async def raise_alerts(parts: Parts) -> None:
        # That somebody leads again is said by who really does: others would take back what the watch tells.
        left_out = frozenset() if house.is_scheduling() else WATCHED
        await aside.run(run_pass, parts.clock.now(), frozenset(Kind) - left_out)

    try:
        await _repeat(raise_alerts, house, ALERT_SECONDS)
    finally:
        await aside.close()


async def _deliver(house: House) -> None:
    """Send the messages that wait; a try under way when the process stops may still end."""
    parts, reach = house.parts, Reach(settings.FACHO_WEBHOOK_ALLOW)
    delivery = Delivery(parts.database, parts.clock, reach, house.is_kept)

    async def deliver_messages(_parts: Parts) -> None:
        await delivery.look()

    try:
        await _repeat(deliver_messages, house, DELIVERY_SECONDS)
    finally:
        await delivery.close()


async def _beat(house: House) -> None:
    """Call the heartbeat address while nodes are really being started."""
    if not settings.FACHO_HEARTBEAT_URL:
        return
    heartbeat = Heartbeat(settings.FACHO_HEARTBEAT_URL)

    async def call_heartbeat(_parts: Parts) -> None:
        if house.is_scheduling():
            await heartbeat.beat()

    await _repeat(call_heartbeat, house, HEARTBEAT_SECONDS)


async def _probe(house: House) -> None:
    """Probe what has to be probed: here, or by messages to the workers that reach the OLTs."""
    executor = house.executor
    if executor is None:
        await asyncio.gather(
            _repeat(recognise_new_olts, house, RECOGNITION_SECONDS),
            _repeat(probe_suspended_olts, house, PROBE_LOOK_SECONDS),
        )
        return

    async def send_probes(parts: Parts) -> None:
        for claim in await parts.database.run(_claim_probes, parts.owner, parts.clock.now()):
            executor.start(claim.execution_id, claim.token)

    await asyncio.gather(
        _repeat(send_probes, house, PROBE_LOOK_SECONDS), _repeat(tell_still_workers, house, STATISTICS_SECONDS)
    )


def _claim_probes(owner: str, now: datetime) -> list[Claimed]:
    return claim_probes(load_wanted_probes(now), at_once=PROBES_AT_ONCE, owner=owner, now=now)


def load_wanted_probes(now: datetime) -> dict[int, str]:
    """Return the OLTs to be asked who they are or whether they are back, each with its group.

    Without groups all share the pollers; an OLT of a group that has none is left alone, as by the scheduler.
    """
    wanted = {*load_unidentified(now), *load_asked_for(now)}
    olts = Olt.objects.filter(id__in=wanted).order_by("id").values_list("id", "poller_group")
    known = settings.FACHO_POLLER_GROUPS
    if not known:
        return dict.fromkeys((olt_id for olt_id, _ in olts), DEFAULT_GROUP)
    return {olt_id: group for olt_id, group in olts if group == DEFAULT_GROUP or group in known}


async def tell_still_workers(parts: Parts) -> None:
    """Say which workers live and complete nothing while others of their groups do."""
    for worker in await parts.database.run(load_still_workers):
        logger.warning("worker.stands_still owner=%s", worker.owner)


async def recognise_new_olts(parts: Parts) -> None:
    """Probe the OLTs that nobody has identified yet; one that is busy or silent has its next turn later."""

    async def recognise(olt_id: int) -> None:
        report = await recognise_olt(parts, olt_id, wait_seconds=CLAIM_SECONDS)
        if not report.answered:
            await parts.database.run(schedule_probe, olt_id, parts.clock.now())

    await _for_each(recognise, await parts.database.run(load_unidentified, parts.clock.now()))


async def probe_suspended_olts(parts: Parts) -> None:
    """Ask OLTs with suspended nodes whether they are back; an answer returns all their nodes to the schedule."""

    async def look(olt_id: int) -> None:
        report = await probe(parts, olt_id, wait_seconds=0)
        await parts.database.run(follow_probe, olt_id, answered=report.answered, now=parts.clock.now())

    await _for_each(look, await parts.database.run(load_asked_for, parts.clock.now()))


async def _for_each(ask: Callable[[int], Awaitable[None]], olt_ids: Sequence[int]) -> None:
    """Ask OLTs beside each other, so that the silent ones delay nobody; a failure concerns its own OLT only."""
    places = asyncio.Semaphore(PROBES_AT_ONCE)

    async def in_turn(olt_id: int) -> None:
        async with places:
            await ask(olt_id)

    results = await asyncio.gather(*map(in_turn, olt_ids), return_exceptions=True)
    for olt_id, result in zip(olt_ids, results, strict=True):
        if result is not None and not isinstance(result, OltBusy):
            logger.error("housekeeping.probe_failed olt=%s", olt_id, exc_info=result)


async def end_forsaken_runs(parts: Parts) -> None:
    """End runs that wait to go on although their node or OLT was disabled or deleted meanwhile."""
    await parts.database.run(end_forsaken, now=parts.clock.now())


async def tell_silence(parts: Parts) -> None:
    """Turn OLTs that do not answer into outages, and end those of OLTs that do."""
    await parts.database.run(follow_silence, parts.clock.now())


async def save_statistics(parts: Parts) -> None:
    """Add the minute's figures of the pollers to their series."""
    await parts.database.run(save_poller_stats, parts.clock.now())


async def _repeat(chore: Callable[[Parts], Awaitable[None]], house: House, pause_seconds: float) -> None:
    while not house.stop.is_set():
        try:
            if house.is_wanted():
                await chore(house.parts)
        except Exception:  # a loop guard: a chore that fails today is tried again, and the others go on
            logger.exception("housekeeping.failed chore=%s", chore.__name__)
        try:
            async with asyncio.timeout(pause_seconds):
                await house.stop.wait()
        except TimeoutError:
            pass
