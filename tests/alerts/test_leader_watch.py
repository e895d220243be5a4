"""A scheduler that is gone is reported by those that are left."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.db.models import F
from pytest_django import Settings

from alerts.alert_world import kinds, make_channel, make_rule
from alerts.outbox_rows import StillClock
from facho.alerts.conditions import sentence_of
from facho.alerts.engine import run_pass
from facho.alerts.models import Alert, AlertRule, Notice
from facho.core.health import Seen
from facho.core.processes import housekeeping as processes_housekeeping
from facho.core.processes import leader_watch as processes_leader_watch
from facho.core.processes.housekeeping import Housekeeping
from facho.core.processes.leader_watch import LeaderWatch, watching
from facho.core.wiring import Parts
from facho.executions.runner import Hints
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.infrastructure.standstill import Standstill
from facho.polling.domain.lease import all_shards
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.store import LEADER, renew_leadership
from factories import NOW


def make_world(*, clock_ahead: timedelta = timedelta(0)) -> None:
    AlertRule.objects.all().delete()
    make_rule("no_leader", make_channel(), name="lead")
    make_rule("pollers_saturated", name="busy")
    LeaderLease.objects.create(name=LEADER, owner="engine", counter=1, renewed_at=NOW + clock_ahead)


@asynccontextmanager
async def open_watch(seen: Seen | None = None) -> AsyncIterator[tuple[LeaderWatch, StillClock]]:
    """A watch with a clock of the test's."""
    clock, database = StillClock(), ThreadGateway(threads=1)
    watch = LeaderWatch(database, clock, seen)
    try:
        yield watch, clock
    finally:
        await watch.close()
        await database.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("clock_ahead", [timedelta(hours=-1), timedelta(0), timedelta(hours=1)])
async def test_who_does_not_lead_tells_that_nobody_does_and_the_next_leader_that_it_is_over(
    clock_ahead: timedelta,
) -> None:
    await sync_to_async(make_world)(clock_ahead=clock_ahead)

    async with open_watch() as (watch, clock):
        for _ in range(4):
            await watch.look()
            clock.at += timedelta(seconds=15)
    reported = await sync_to_async(lambda: (kinds(), list(Alert.objects.values_list("subject", "began_at"))))()
    assert reported == (["opened"], [("leader", NOW)])
    # Delivered here, since nobody else would: this channel cannot be reached, but it was tried.
    assert await sync_to_async(lambda: Notice.objects.get().tries)() > 0

    await sync_to_async(run_pass)(clock.at)

    assert (await sync_to_async(lambda: Alert.objects.get().state)()) == "resolved"


@pytest.mark.django_db(transaction=True)
async def test_while_somebody_leads_nobody_else_looks_however_its_clock_goes() -> None:
    await sync_to_async(make_world)(clock_ahead=timedelta(minutes=-3))

    async with open_watch() as (watch, clock):
        for _ in range(5):
            await watch.look()
            clock.at += timedelta(seconds=15)
            await sync_to_async(LeaderLease.objects.update)(counter=F("counter") + 1)

    assert not await sync_to_async(Alert.objects.exists)()


@pytest.mark.django_db(transaction=True)
async def test_an_empty_seat_is_no_leader_if_it_stays_empty() -> None:
    await sync_to_async(make_world)()
    await sync_to_async(LeaderLease.objects.all().delete)()

    async with open_watch() as (watch, clock):
        await watch.look()
        assert not await sync_to_async(Alert.objects.exists)()
        clock.at += timedelta(seconds=30)
        await watch.look()

    assert await sync_to_async(kinds)() == ["opened"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_scheduling", [True, False])
async def test_who_keeps_the_house_without_leading_takes_back_nothing(
    is_scheduling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, stop, loop = [], asyncio.Event(), asyncio.get_running_loop()

    def note_pass(_now: datetime, kinds: frozenset[str]) -> None:
        looks.append(kinds)
        loop.call_soon_threadsafe(stop.set)

    monkeypatch.setattr(processes_housekeeping, "run_pass", note_pass)
    nothing: Any = None
    parts = Parts(nothing, ThreadGateway(threads=1), SystemClock(), "engine/test", Hints())
    async with asyncio.timeout(5):
        await processes_housekeeping.alerting(Housekeeping(parts, stop, is_scheduling=lambda: is_scheduling))

    [kinds_looked_at] = looks
    assert ("no_leader" in kinds_looked_at) is is_scheduling
    assert "pon_outage" in kinds_looked_at


@pytest.mark.django_db(transaction=True)
async def test_one_engine_of_several_that_is_gone_is_named_and_the_first_sends_it(settings: Settings) -> None:
    settings.FACHO_ENGINES = 2
    await sync_to_async(make_world)()
    one, two = all_shards(2)
    seen = Seen()

    async with open_watch(seen) as (watch, clock):
        for _ in range(4):
            await sync_to_async(renew_leadership)("engine/1", now=clock.at, shard=one)
            if clock.at == NOW:
                await sync_to_async(renew_leadership)("engine/2", now=clock.at, shard=two)
            await watch.look()
            clock.at += timedelta(seconds=15)

    assert (seen.reason, seen.engines) == ("engine_gone", "2/2")
    facts, tries = await sync_to_async(lambda: (Alert.objects.get().facts, Notice.objects.get().tries))()
    assert facts == {"reason": "engine_gone", "engines": "2/2"}
    assert sentence_of("no_leader", facts) == "Engine 2/2 does not poll. Its OLTs wait for it"
    # The engine that keeps the house lives, and sends what there is to send.
    assert tries == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_other_alive", [True, False])
async def test_an_engine_does_not_take_back_that_another_is_gone(
    is_other_alive: bool, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FACHO_ENGINES = 2
    one, two = all_shards(2)
    looks, stop, loop = [], asyncio.Event(), asyncio.get_running_loop()

    def note_pass(_now: datetime, kinds: frozenset[str]) -> None:
        looks.append(kinds)
        loop.call_soon_threadsafe(stop.set)

    monkeypatch.setattr(processes_housekeeping, "run_pass", note_pass)
    for shard in (one, two) if is_other_alive else (one,):
        await sync_to_async(renew_leadership)(f"engine/{shard}", now=SystemClock().now(), shard=shard)
    nothing: Any = None
    parts = Parts(nothing, ThreadGateway(threads=1), SystemClock(), "engine/1", Hints(), shard=one)
    async with asyncio.timeout(5):
        await processes_housekeeping.alerting(Housekeeping(parts, stop))

    assert ("no_leader" in looks[0]) is is_other_alive


async def test_no_error_ends_the_watch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    has_looked_again = asyncio.Event()

    async def look(_watch: LeaderWatch) -> None:
        if "leader_watch.failed" not in caplog.text:
            raise RuntimeError("a defect of ours")
        has_looked_again.set()

    monkeypatch.setattr(processes_leader_watch, "LOOK_SECONDS", 0)
    monkeypatch.setattr(LeaderWatch, "look", look)

    async with watching(ThreadGateway(threads=1), SystemClock()), asyncio.timeout(5):
        await has_looked_again.wait()

    assert "a defect of ours" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_a_leader_that_cannot_store_says_why_and_the_watch_raises_the_alert() -> None:
    await sync_to_async(make_world)()
    seen = Seen()
    await sync_to_async(LeaderLease.objects.update)(standstill="disk_full")

    async with open_watch(seen) as (watch, clock):
        await watch.look()
        reported = seen.reason
        await sync_to_async(LeaderLease.objects.update)(standstill="", counter=2)
        clock.at += timedelta(seconds=2)
        await watch.look()

    assert (reported, seen.reason) == ("disk_full", None)
    assert await sync_to_async(lambda: Alert.objects.get().facts)() == {"reason": "disk_full"}


@pytest.mark.django_db(transaction=True)
async def test_a_leader_that_stopped_renewing_is_doubted_by_a_write_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    await sync_to_async(make_world)()
    seen = Seen()

    def refuse(_now: datetime) -> None:
        error = OperationalError("attempt to write a readonly database")
        error.__cause__ = OSError(errno.EROFS, "")
        raise error

    async with open_watch(seen) as (watch, clock):
        await watch.look()
        monkeypatch.setattr(processes_leader_watch, "_try_to_write", refuse)
        clock.at += timedelta(seconds=9)
        await watch.look()
        assert seen.reason is None
        clock.at += timedelta(seconds=2)
        await watch.look()

    assert seen.reason == "read_only"


@pytest.mark.django_db(transaction=True)
async def test_what_a_request_noticed_is_over_when_a_write_goes_well() -> None:
    await sync_to_async(make_world)()
    seen = Seen(is_watched=True, noticed=Standstill.IO_ERROR)
    assert seen.reason == "io_error"

    async with open_watch(seen) as (watch, _):
        await watch.look()

    assert seen.reason is None


@pytest.mark.django_db(transaction=True)
async def test_a_leader_that_nobody_has_seen_alive_is_not_believed_though_no_alert_is_raised_yet() -> None:
    await sync_to_async(make_world)(clock_ahead=timedelta(minutes=-5))
    seen = Seen()

    async with open_watch(seen) as (watch, _):
        await watch.look()

    assert seen.reason == "no_leader"
    assert not await sync_to_async(Alert.objects.exists)()
