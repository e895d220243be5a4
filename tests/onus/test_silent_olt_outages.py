"""OLTs that do not answer as outages, and most of them at once as one: the poller lost its network."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from facho.hosts.models import Olt
from facho.hosts.store import pause
from facho.onus import outages
from facho.onus.models import Onu, OnuReading, Outage, PonPort
from facho.snmp_jobs.store import load_intervals
from factories import NOW, make_node, make_olt

pytestmark = pytest.mark.django_db


def minute(number: float) -> datetime:
    return NOW + timedelta(minutes=number)


def follow_silence(now: datetime) -> None:
    if outages.has_silence():
        outages.follow_silence(load_intervals(now), now)


def polled_olts(count: int) -> list[Olt]:
    olts = [make_olt() for _ in range(count)]
    for olt in olts:
        make_node(olt)
        hear([olt])
    return olts


def hear(olts: Iterable[Olt], *, at: datetime = NOW) -> None:
    Olt.objects.filter(id__in=[olt.id for olt in olts]).update(reachability="up", last_answer_at=at)


def lose(olts: Iterable[Olt]) -> None:
    Olt.objects.filter(id__in=[olt.id for olt in olts]).update(reachability="down")


def add_onus(olt: Olt, *states: str) -> None:
    port = PonPort.objects.create(olt=olt, frame=0, slot=1, port=0)
    for number, state in enumerate(states):
        onu = Onu.objects.create(olt=olt, pon_port=port, onu_id=number, first_seen_at=NOW)
        OnuReading.objects.create(onu=onu, run_state=state)


def test_an_olt_that_falls_silent_is_an_outage_until_it_answers() -> None:
    silent, *_ = polled_olts(4)
    add_onus(silent, "online", "online", "offline")
    lose([silent])

    follow_silence(minute(1))
    opened = Outage.objects.get()
    hear([silent], at=minute(7))
    follow_silence(minute(8))

    outage = Outage.objects.get()
    assert (opened.scope, opened.olt, opened.cause, opened.affected, opened.down) == ("olt", silent, "olt", 2, 2)
    assert (outage.started_at, outage.ended_at, outage.down) == (minute(1), minute(7), 0)


def test_most_olts_at_once_are_the_network_and_each_has_its_own_again_when_it_is_back() -> None:
    olts = polled_olts(4)
    lose(olts[:3])

    follow_silence(minute(1))
    network = Outage.objects.get(scope="network")
    assert (network.affected_olts, network.parts.count(), network.ended_at) == (3, 3, None)
    hear(olts[:2], at=minute(5))
    follow_silence(minute(5))

    assert Outage.objects.get(scope="network").ended_at == minute(5)
    assert Outage.objects.get(ended_at=None).olt == olts[2]
    assert Outage.objects.get(ended_at=None).part_of is None


def test_looking_again_changes_nothing() -> None:
    olts = polled_olts(3)
    lose(olts)
    follow_silence(minute(1))
    before = list(Outage.objects.order_by("id").values())

    follow_silence(minute(2))

    assert list(Outage.objects.order_by("id").values()) == before


def test_an_olt_that_nobody_asks_is_no_outage() -> None:
    olts = polled_olts(5)
    lose(olts[:2])
    follow_silence(minute(1))

    Olt.objects.filter(id=olts[0].id).update(enabled=False)
    pause(olts[1], minutes=60, note="", now=minute(2))
    follow_silence(minute(3))

    assert list(Outage.objects.values_list("ended_at", flat=True)) == [minute(3)] * 2


def test_while_everybody_answers_a_look_costs_two_queries(django_assert_num_queries: object) -> None:
    polled_olts(3)

    with django_assert_num_queries(2):  # type: ignore[operator]
        follow_silence(minute(1))
