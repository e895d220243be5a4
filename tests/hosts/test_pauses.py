"""Pauses: which of them holds, and that nothing is asked by itself meanwhile."""

from datetime import timedelta

import pytest

from facho.execution_coordinator.quotas import load_pauses
from facho.hosts.models import Olt, Pause
from facho.hosts.store import active_pauses, end_pause, end_pauses, load_due_probes, load_pause, pause, plan_pauses
from facho.polling.domain.schedule import Span
from facho.zabbix_pollers.store import load_unidentified
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_the_pause_that_ends_last_holds() -> None:
    olt = make_olt()
    pause(olt, minutes=60, note="short", now=NOW)
    pause(None, minutes=90, note="long", now=NOW)
    pause(make_olt(), minutes=999, note="elsewhere", now=NOW)

    holding = [load_pause(olt.id, NOW + timedelta(minutes=minutes)) for minutes in (-1, 30, 70, 90)]

    assert [row.note if row else None for row in holding] == [None, "long", "long", None]


@pytest.mark.parametrize("everything", [True, False])
def test_nothing_is_probed_while_it_is_paused(everything: bool) -> None:
    olt, other = make_olt(), make_olt()
    pause(None if everything else olt, minutes=60, note="", now=NOW)
    expected = [] if everything else [other.id]

    assert load_unidentified(NOW) == expected
    assert set(load_unidentified(NOW + HOUR)) == {olt.id, other.id}
    Olt.objects.update(next_probe_at=NOW)
    assert load_due_probes(NOW) == expected
    assert set(load_due_probes(NOW + HOUR)) == {olt.id, other.id}


def test_a_pause_ends_now_and_one_to_come_never_begins() -> None:
    holds = pause(None, minutes=60, note="", now=NOW - timedelta(minutes=5))
    planned = pause(None, minutes=60, note="", now=NOW + HOUR)

    assert end_pause(holds.id, now=NOW)
    assert end_pause(planned.id, now=NOW)
    assert not end_pause(holds.id, now=NOW)

    assert Pause.objects.get().ends_at == NOW


def test_the_pauses_of_an_olt_end_without_those_of_everything() -> None:
    olt = make_olt()
    for place in (olt, olt, None):
        pause(place, minutes=60, note="", now=NOW - timedelta(minutes=5))

    assert end_pauses(olt, now=NOW) == 2
    assert load_pause(olt.id, NOW) is not None
    assert end_pauses(None, now=NOW) == 1


def test_a_silence_of_alerts_stops_no_polling_and_excuses_no_slot() -> None:
    olt = make_olt()
    plan_pauses([olt], starts_at=NOW - HOUR, ends_at=NOW + HOUR, note="crew", keeps_polling=True)

    assert load_pause(olt.id, NOW) is None
    assert not active_pauses(NOW)
    assert load_unidentified(NOW) == [olt.id]
    assert load_pauses(Span(NOW - HOUR, NOW + HOUR)) == {}
