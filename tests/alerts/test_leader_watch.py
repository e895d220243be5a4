"""A scheduler that is gone is told of by those that are left."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from alerts.alert_world import kinds, make_channel, make_rule
from facho.alerts.engine import run_pass
from facho.alerts.models import Alert, AlertRule, Kind, Notice
from facho.core import leader_watch
from facho.core.clock import SystemClock
from facho.core.gateway import ThreadGateway
from facho.core.leader_watch import LeaderWatch, watching
from facho.zabbix_pollers.models import LeaderLease


def make_world(*, lease_age_seconds: int) -> None:
    AlertRule.objects.all().delete()
    make_rule(Kind.NO_LEADER, make_channel(), name="lead")
    make_rule(Kind.POLLERS_SATURATED, name="busy")
    renewed_at = timezone.now() - timedelta(seconds=lease_age_seconds)
    LeaderLease.objects.create(name="scheduler", owner="engine", renewed_at=renewed_at)


async def look() -> None:
    database = ThreadGateway(threads=1)
    watch = LeaderWatch(database, SystemClock())
    try:
        await watch.look()
    finally:
        await watch.close()
        await database.close()


@pytest.mark.django_db(transaction=True)
async def test_who_does_not_lead_tells_that_nobody_does_and_the_next_leader_that_it_is_over() -> None:
    await sync_to_async(make_world)(lease_age_seconds=60)

    await look()
    await look()
    told = await sync_to_async(lambda: (kinds(), list(Alert.objects.values_list("subject", flat=True))))()
    assert told == (["opened"], ["leader"])
    # Delivered here, since nobody else would: this channel cannot be reached, but it was tried.
    assert await sync_to_async(lambda: Notice.objects.get().tries)() > 0

    await sync_to_async(LeaderLease.objects.update)(renewed_at=timezone.now())
    await sync_to_async(run_pass)(timezone.now())

    assert (await sync_to_async(lambda: Alert.objects.get().state)()) == "resolved"


@pytest.mark.django_db(transaction=True)
async def test_while_somebody_leads_nobody_else_looks() -> None:
    await sync_to_async(make_world)(lease_age_seconds=5)

    await look()

    assert not await sync_to_async(Alert.objects.exists)()


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
