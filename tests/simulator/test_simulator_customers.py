"""Customers are repeatable, distinct and believable."""

import re

from world_factory import make_world

from facho.polling.vendors.index import Place
from facho.simulator.world import CustomerMaker


def test_the_same_seed_makes_the_same_customers() -> None:
    assert list(make_world(seed=5).onus) == list(make_world(seed=5).onus)


def test_another_seed_makes_other_serials() -> None:
    first, second = make_world(seed=5), make_world(seed=6)

    assert not {onu.serial for onu in first.onus} & {onu.serial for onu in second.onus}


def test_serials_are_different_on_all_olts_of_a_fleet() -> None:
    serials = [onu.serial for number in range(20) for onu in make_world(number=number).onus]

    assert len(set(serials)) == len(serials)


def test_serials_and_descriptions_look_like_real_ones() -> None:
    for onu in make_world().onus:
        assert re.fullmatch(r"[A-Z]{4}[0-9A-F]{8}", onu.serial)
        assert re.fullmatch(r"CLI-\d{5} .+", onu.description)


def test_the_asked_share_of_customers_is_offline_with_a_cause() -> None:
    offline = [onu for onu in make_world(onus=400, offline_share=0.25).onus if not onu.is_online]

    assert 60 <= len(offline) <= 140
    assert all(onu.last_down_cause and onu.last_down_at and onu.last_down_at < 0 for onu in offline)


def test_light_gets_weaker_with_distance() -> None:
    maker = CustomerMaker(seed=1, olt_number=0)
    onus = [maker.make(Place(onu=number), at=0.0) for number in range(500)]
    onus.sort(key=lambda onu: onu.distance_m)

    near, far = onus[:100], onus[-100:]

    assert sum(onu.rx_dbm for onu in near) / 100 > sum(onu.rx_dbm for onu in far) / 100 + 2
