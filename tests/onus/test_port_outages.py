"""Outages of ports and cards as rows: opened, extended, ended and continued by the polls that show them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from onu_world import after, poll, reading, street, walk

from facho.hosts.models import Olt
from facho.onus.models import OnuReading, Outage
from facho.onus.outages import breaks_of
from facho.polling.domain.outages import OutageBreak
from facho.polling.vendors.index import Place
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

PORT, NEXT_PORT = street(20), street(20, port=1)


def served(onus: Mapping[Place, str]) -> Olt:
    olt = make_olt()
    walk(olt, onus)
    states(olt, 0, onus)
    return olt


def states(olt: Olt, number: int, onus: Iterable[Place], *, down: Iterable[Place] = (), cause: str = "los") -> None:
    dark = set(down)
    poll(
        olt,
        *(
            reading(place, run_state="offline", last_down_cause=cause)
            if place in dark
            else reading(place, run_state="online")
            for place in onus
        ),
        now=after(number),
    )


def test_a_dark_port_is_one_outage_from_its_first_poll_to_its_last() -> None:
    olt = served(PORT)

    states(olt, 1, PORT, down=PORT)
    opened = Outage.objects.get()
    states(olt, 2, PORT, down=PORT)
    states(olt, 3, PORT)

    outage = Outage.objects.get()
    assert (opened.ended_at, opened.down) == (None, 20)
    assert (outage.scope, outage.place, outage.cause) == ("pon", "0/1/0", "fibre")
    assert (outage.started_at, outage.ended_at, outage.affected, outage.down) == (after(1), after(3), 20, 0)
    assert OnuReading.objects.filter(outage=outage).count() == 20


def test_a_street_without_power_is_reported_by_its_farewells() -> None:
    olt = served(PORT)

    states(olt, 1, PORT, down=list(PORT)[:6], cause="dying_gasp")

    outage = Outage.objects.get()
    assert (outage.cause, outage.affected) == ("power", 6)


def test_all_ports_of_a_card_are_the_card_and_take_in_what_was_seen_first() -> None:
    everyone = PORT | NEXT_PORT
    olt = served(everyone)

    states(olt, 1, everyone, down=PORT)
    states(olt, 2, everyone, down=everyone)

    card, port = Outage.objects.get(scope="card"), Outage.objects.get(scope="pon")
    assert (card.place, card.affected, card.started_at) == ("0/1", 40, after(1))
    assert (port.part_of, port.ended_at) == (card, after(2))
    assert OnuReading.objects.filter(outage=card).count() == 40


def test_what_comes_back_soon_goes_on_as_the_same_outage_and_later_as_another() -> None:
    olt = served(PORT)
    for number in (1, 3):
        states(olt, number, PORT, down=PORT)
        states(olt, number + 1, PORT)

    outage = Outage.objects.get()
    assert (outage.started_at, outage.resumed_at, outage.ended_at) == (after(1), after(3), after(4))
    assert breaks_of(outage) == (OutageBreak(after(2), after(3)),)
    states(olt, 30, PORT, down=PORT)

    assert Outage.objects.count() == 2


def test_onus_that_leave_the_port_end_its_outage() -> None:
    stayed = dict([next(iter(NEXT_PORT.items()))])
    olt = served(PORT | stayed)
    states(olt, 1, PORT | stayed, down=PORT)

    for number in (2, 3):
        walk(olt, stayed, now=after(number))

    assert Outage.objects.get().ended_at == after(3)


def test_a_second_look_in_the_same_moment_takes_in_nobody_who_was_down_before() -> None:
    olt = served(PORT)
    [single, *others] = PORT
    states(olt, 1, PORT, down=[single])
    states(olt, 2, PORT, down=[single])
    states(olt, 3, PORT, down=[single, *others[:5]])

    states(olt, 3, PORT, down=[single, *others[:5]])

    assert Outage.objects.get().affected == 5


def test_many_that_went_one_by_one_are_no_outage() -> None:
    olt = served(PORT)

    for number in range(1, 8):
        states(olt, 2 * number, PORT, down=list(PORT)[:number])
        states(olt, 2 * number + 1, PORT, down=list(PORT)[:number])

    assert not Outage.objects.exists()


def test_what_was_seen_long_ago_belongs_to_another_cycle() -> None:
    """After a day in which nobody could ask, two that went before and one that went since are no outage."""
    olt = served(PORT)
    states(olt, 1, PORT, down=list(PORT)[:2])

    states(olt, 288, PORT, down=list(PORT)[:3])

    assert not Outage.objects.exists()


def test_a_place_has_one_open_outage_and_so_has_the_network() -> None:
    olt = make_olt()
    times = {"started_at": NOW, "resumed_at": NOW, "cause": "unknown", "affected": 3, "down": 3}
    places = [{"scope": "pon", "olt": olt, "slot": 1}, {"scope": "network"}]
    for place in places:
        Outage.objects.create(**place, **times)
        Outage.objects.create(**place, **times, ended_at=NOW + timedelta(hours=1))

        with pytest.raises(IntegrityError), transaction.atomic():
            Outage.objects.create(**place, **times)
