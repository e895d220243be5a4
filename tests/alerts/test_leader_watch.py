"""A scheduler that is gone is told of by those that are left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F

from alerts.alert_world import kinds, make_channel, make_rule
from alerts.outbox_rows import StillClock
from facho.alerts.engine import run_pass
from facho.alerts.models import Alert, AlertRule, Kind, Notice
from facho.core import housekeeping, leader_watch
from facho.core.clock import SystemClock
from facho.core.gateway import ThreadGateway
from facho.core.housekeeping import House
from facho.core.leader_watch import LeaderWatch, watching
from facho.core.wiring import Parts
from facho.executions.hints import NoHints
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.store import LEADER
from factories import NOW


def make_world(*, clock_ahead: timedelta = timedelta(0)) -> None:
    AlertRule.objects.all().delete()
    make_rule(Kind.NO_LEADER, make_channel(), name="lead")
    make_rule(Kind.POLLERS_SATURATED, name="busy")
    LeaderLease.objects.create(name=LEADER, owner="engine", counter=1, renewed_at=NOW + clock_ahead)


@asynccontextmanager
async def open_watch() -> AsyncIterator[tuple[LeaderWatch, StillClock]]:
    """A watch with a clock of the test's."""
    clock, database = StillClock(), ThreadGateway(threads=1)
    watch = LeaderWatch(database, clock)
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
    told = await sync_to_async(lambda: (kinds(), list(Alert.objects.values_list("subject", "began_at"))))()
    assert told == (["opened"], [("leader", NOW)])
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

    def note_pass(_now: datetime, kinds: frozenset[Kind]) -> None:
        looks.append(kinds)
        loop.call_soon_threadsafe(stop.set)

    monkeypatch.setattr(housekeeping, "run_pass", note_pass)
    nothing: Any = None
    parts = Parts(nothing, nothing, SystemClock(), "engine/test", NoHints())
    async with asyncio.timeout(5):
        await housekeeping._alert(House(parts, stop, is_scheduling=lambda: is_scheduling))

    [kinds_looked_at] = looks
    assert (Kind.NO_LEADER in kinds_looked_at) is is_scheduling
    assert Kind.PON_OUTAGE in kinds_looked_at


async def test_no_error_ends_the_watch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    has_looked_again = asyncio.Event()

    async def look(_watch: LeaderWatch) -> None:
        if "leader_watch.failed" not in caplog.text:
            raise RuntimeError("a defect of ours")
        has_looked_again.set()

    monkeypatch.setattr(leader_watch, "WATCH_SECONDS", 0)
    monkeypatch.setattr(LeaderWatch, "look", look)

    async with watching(ThreadGateway(threads=1), SystemClock()), asyncio.timeout(5):
        await has_looked_again.wait()

    assert "a defect of ours" in caplog.text
