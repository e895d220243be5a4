"""Hours of polling through the database: outages, people who change things, and a crash, counted to the unit.

`make bench` plays six hours of twenty OLTs.
"""

import asyncio

import pytest
from bench import slots
from bench.counted_hours import compare
from bench.polled_hours import Pace, PolledHours
from bench.virtual_loop import VirtualTimeLoop

from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState
from facho.zabbix_pollers import scheduler

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough("postgresql")]

HOURS, OLTS = 2, 8
# A look each second, and a pass every five, would take a minute.
TICK_SECONDS = 20.0
PACE = Pace(pass_seconds=30, probe_seconds=15)


def test_trackers_equal_an_independent_count_and_violations_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # The loop waits for the database: on its clock no time passes meanwhile.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")
    monkeypatch.setattr(scheduler, "TICK_SECONDS", TICK_SECONDS)

    async def play() -> PolledHours:
        world = PolledHours(PACE, olts=OLTS, hours=HOURS)
        await world.play()
        return world

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        world = runner.run(play())
    compared = compare(world)
    served = Execution.objects.filter(slot_at__isnull=False, status=ExecutionState.SUCCESS).count()

    assert compared.wrong == []
    assert served == world.devices.answered
    assert (compared.unraised, compared.groundless) == (set(), set())
    assert compared.worst_seconds <= 60
    assert (compared.trackers > 70, compared.slots > 400, compared.violations > 3) == (True, True, True)


@pytest.mark.parametrize(("olts", "hours"), [(4, 1), pytest.param(OLTS, HOURS, marks=pytest.mark.thorough)])
def test_hours_of_kills_and_of_a_clock_that_is_set_account_for_every_slot(
    monkeypatch: pytest.MonkeyPatch, olts: int, hours: int
) -> None:
    """`python -m bench.slots` plays more of them; the steps are noted by the database."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")
    monkeypatch.setattr(scheduler, "TICK_SECONDS", TICK_SECONDS)
    monkeypatch.setattr(slots, "PASS_SECONDS", PACE.pass_seconds)
    monkeypatch.setattr(slots, "PROBE_SECONDS", PACE.probe_seconds)

    seen = slots.play_hours(olts=olts, hours=hours)

    assert seen["unaccounted"] == 0, seen["examples"]
    assert seen["doubled"] == 0
    assert min(seen["served"], seen["skipped"]) > 50
    assert seen["reported"] > 0
