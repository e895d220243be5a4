"""ONUs of an OLT that does not tell their ports: nobody knows who shares a fibre, so no port of theirs is out."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User
from onu_world import after, poll, present, reading, reported, walk

from facho.accounts.scope import scope_of
from facho.dashboard.onu.list import OnuFilterForm
from facho.hosts.models import Olt
from facho.onus.models import Onu, Outage, PonPort
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from factories import make_olt

pytestmark = pytest.mark.django_db

PORTLESS = "calix_axos"
ONTS = {Place(0, 0, 0, number): "" for number in range(1, 13)}


def states(olt: Olt, number: int, state: str) -> None:
    poll(olt, *(reading(place, run_state=state) for place in ONTS), now=after(number))


def test_only_a_family_whose_indexes_have_ports_tells_them() -> None:
    portless = [key for key, definition in load_definitions().items() if not definition.has_ports]

    assert portless == [PORTLESS, "calix_exa"]


def test_onus_that_go_down_together_are_no_outage_of_a_port_that_nobody_knows() -> None:
    olt = make_olt(vendor=PORTLESS)
    walk(olt, ONTS)
    states(olt, 0, "online")

    states(olt, 1, "offline")

    assert [str(onu) for onu in Onu.objects.select_related("pon_port")][:2] == ["?/1", "?/2"]
    assert [kind for kind, _ in reported()] == ["down"] * len(ONTS)
    assert not Outage.objects.exists()


def test_an_outage_that_was_reported_of_such_a_port_ends(
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    """An earlier version took the place for a port."""
    olt = make_olt(vendor="huawei_smartax")
    walk(olt, ONTS)
    states(olt, 0, "online")
    states(olt, 1, "offline")
    assert Outage.objects.get().ended_at is None
    Olt.objects.filter(id=olt.id).update(vendor=PORTLESS)

    walk(olt, ONTS, now=after(2))
    with django_assert_max_num_queries(4):
        walk(olt, ONTS, now=after(2))
    states(olt, 2, "offline")

    assert not PonPort.objects.get().is_known
    assert Outage.objects.get().ended_at == after(2)


def test_a_port_is_known_again_when_the_olt_turns_out_to_tell_it() -> None:
    olt = make_olt(vendor=PORTLESS)
    walk(olt, ONTS)
    Olt.objects.filter(id=olt.id).update(vendor="huawei_smartax")

    walk(olt, ONTS, now=after(1))

    assert (str(PonPort.objects.get()), present(olt)) == ("0/0/0", ONTS)


def test_onus_of_an_unknown_port_are_listed_by_its_sign() -> None:
    walk(make_olt(vendor=PORTLESS), ONTS)
    walk(make_olt(), {Place(0, 0, 0, 1): "HWTC1"})
    scope = scope_of(User.objects.create_superuser("admin"))

    found = OnuFilterForm({"port": "?"}, scope).find()

    assert found.count() == len(ONTS)
    assert OnuFilterForm({"port": "0/0/0"}, scope).find().count() == len(ONTS) + 1
