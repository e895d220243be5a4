"""The heartbeat: called while nodes are really started, silent about its address."""

import asyncio
import logging
from typing import Any

import pytest
from pytest_django import Settings

from alerts.outbox_rows import StillClock
from alerts.sinks import http_sink
from facho.alerts.http_request import Heartbeat
from facho.core.env import read_environment
from facho.core.processes import housekeeping as processes_housekeeping
from facho.core.processes.housekeeping import Housekeeping
from facho.core.wiring import Parts
from facho.executions.runner import Hints
from facho.infrastructure.gateway import SystemClock
from facho.polling.domain.lease import HeldLease
from facho.zabbix_pollers.scheduler import FRESH_TICK_SECONDS, Leases, ZabbixScheduler

CANARY = "canary-beat"


def beat_times(heartbeat: Heartbeat, times: int) -> None:
    async def beat() -> None:
        for _ in range(times):
            await heartbeat.beat()

    asyncio.run(beat())


def test_of_a_row_of_failures_the_first_is_logged_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with http_sink() as sink:
        heartbeat = Heartbeat(f"{sink.url}/{CANARY}")
    beat_times(heartbeat, 3)
    with http_sink(sink):
        beat_times(heartbeat, 2)

    lines = [record.getMessage() for record in caplog.records if record.name.startswith("facho")]
    assert lines == ["heartbeat.failed trouble=unreachable answer=None", "heartbeat.works_again"]
    assert [(each.method, each.path) for each in sink.received] == [("GET", f"/{CANARY}")] * 2
    assert CANARY not in caplog.text


@pytest.mark.parametrize(("is_scheduling", "beats"), [(True, 1), (False, 0)])
def test_it_beats_only_while_nodes_are_started(settings: Settings, is_scheduling: bool, beats: int) -> None:
    async def keep() -> None:
        stop = asyncio.Event()
        nothing: Any = None  # neither network nor database has a part in it
        parts = Parts(nothing, nothing, SystemClock(), "engine/test", Hints())
        house = Housekeeping(parts, stop, is_scheduling=lambda: is_scheduling)
        keeping = asyncio.create_task(processes_housekeeping.beating(house))
        asyncio.get_running_loop().call_later(0.2, stop.set)
        await keeping

    with http_sink() as sink:
        settings.FACHO_HEARTBEAT_URL = sink.url
        asyncio.run(keep())

    assert len(sink.received) == beats


@pytest.mark.parametrize("url", ["ftp://hc.example.net/x", "hc.example.net", f"https://user:{CANARY}@hc.example.net/"])
def test_an_address_that_cannot_be_called_is_a_problem_of_the_environment(url: str) -> None:
    environment = read_environment({"FACHO_HEARTBEAT_URL": url, "FACHO_WEBHOOK_ALLOW": "10.0.0.5/8"})

    assert [problem.name for problem in environment.problems] == ["FACHO_WEBHOOK_ALLOW", "FACHO_HEARTBEAT_URL"]
    assert CANARY not in str(environment)


def test_a_leader_whose_ticks_fail_does_not_schedule() -> None:
    clock = StillClock()
    scheduler = ZabbixScheduler(None, None, clock, "me", Leases(60, 20))  # type: ignore[arg-type]  # no tick is made
    now = clock.monotonic()

    scheduler._lead = HeldLease(60, clock.reading())
    assert not scheduler.is_scheduling
    scheduler._ticked_at = now
    assert scheduler.is_scheduling
    scheduler._ticked_at = now - FRESH_TICK_SECONDS
    assert not scheduler.is_scheduling
    scheduler._ticked_at, scheduler._lead = now, None
    assert not scheduler.is_scheduling
