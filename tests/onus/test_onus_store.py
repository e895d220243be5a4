"""What a run learned about ONUs, stored by comparing with what is known."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuData, OnuReading
from facho.onus.store import Reading, is_storable, load_places, save_inventory, save_readings
from facho.polling.vendors.index import Place
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

HERE, THERE, ELSEWHERE = Place(0, 1, 0, 1), Place(0, 1, 0, 2), Place(0, 2, 5, 1)
LATER = NOW + timedelta(minutes=5)


def walk(olt: Olt, serials: Mapping[Place, str], *, is_complete: bool = True) -> dict[str, int]:
    return save_inventory(olt.id, serials, is_complete=is_complete, now=NOW)


def present(olt: Olt) -> dict[Place, str]:
    onus = Onu.objects.filter(olt=olt, is_present=True).select_related("pon_port")
    return {Place(o.pon_port.frame, o.pon_port.slot, o.pon_port.port, o.onu_id): o.serial for o in onus}


def test_a_walk_finds_onus_and_their_ports() -> None:
    olt = make_olt()

    counts = walk(olt, {HERE: "HWTC1", ELSEWHERE: "HWTC2"})

    assert present(olt) == {HERE: "HWTC1", ELSEWHERE: "HWTC2"}
    assert counts == {"onus": 2, "new": 2, "absent": 0}
    assert load_places(olt.id) == [HERE, ELSEWHERE]


def test_an_onu_that_moved_keeps_its_row() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    row = Onu.objects.get()

    walk(olt, {ELSEWHERE: "HWTC1"})

    assert present(olt) == {ELSEWHERE: "HWTC1"}
    assert Onu.objects.get().id == row.id


def test_two_onus_that_changed_places_keep_their_rows() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    rows = dict(Onu.objects.values_list("serial", "id"))

    walk(olt, {HERE: "HWTC2", THERE: "HWTC1"})

    assert present(olt) == {HERE: "HWTC2", THERE: "HWTC1"}
    assert dict(Onu.objects.values_list("serial", "id")) == rows


def test_an_onu_replaced_at_its_place_leaves_at_once() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    walk(olt, {HERE: "HWTC9"}, is_complete=False)

    assert present(olt) == {HERE: "HWTC9"}
    assert Onu.objects.get(serial="HWTC1").absent_since == NOW


def test_a_complete_walk_over_a_replaced_onu_keeps_the_newcomer_and_the_place() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    for _ in range(3):
        walk(olt, {HERE: "HWTC9", THERE: "HWTC2"})

    assert present(olt) == {HERE: "HWTC9", THERE: "HWTC2"}
    assert not Onu.objects.get(serial="HWTC1").is_present


def test_two_onus_with_one_serial_are_both_kept() -> None:
    olt = make_olt()

    walk(olt, {HERE: "HWTC1", THERE: "HWTC1"})
    walk(olt, {HERE: "HWTC1", THERE: "HWTC1"})

    assert present(olt) == {HERE: "HWTC1", THERE: "HWTC1"}
    assert Onu.objects.count() == 2


def test_onus_without_a_serial_are_known_by_their_place() -> None:
    olt = make_olt()

    walk(olt, {HERE: "", THERE: ""})
    walk(olt, {HERE: "", THERE: ""})

    assert Onu.objects.count() == 2


def test_one_complete_walk_without_an_onu_does_not_make_it_absent_but_the_second_does() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    walk(olt, {HERE: "HWTC1"})
    assert len(present(olt)) == 2
    walk(olt, {HERE: "HWTC1"})

    assert present(olt) == {HERE: "HWTC1"}


def test_a_broken_walk_never_makes_an_onu_absent() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    for _ in range(5):
        walk(olt, {HERE: "HWTC1"}, is_complete=False)

    assert len(present(olt)) == 2


def test_an_onu_that_came_back_has_no_misses_left() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    for serials in ({HERE: "HWTC1"}, {HERE: "HWTC1", THERE: "HWTC2"}, {HERE: "HWTC1"}):
        walk(olt, serials)

    assert len(present(olt)) == 2


def test_an_absent_onu_returns_as_itself() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    for _ in range(2):
        walk(olt, {HERE: "HWTC1"})

    walk(olt, {HERE: "HWTC1", ELSEWHERE: "HWTC2"})

    assert present(olt) == {HERE: "HWTC1", ELSEWHERE: "HWTC2"}
    assert Onu.objects.count() == 2


def reading(place: Place, **values: object) -> Reading:
    keyed = {f"onu.{name}": value for name, value in values.items()}
    return Reading(place, keyed, {key: str(value) for key, value in keyed.items()})


def test_readings_are_stored_with_since_when_the_state_holds() -> None:
    """S3-11: raw values land in onu_data, typed ones in the reading."""
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    save_readings(
        olt.id, [reading(HERE, description="CLI-1", run_state="online", rx_power=-21.37, distance=1200)], now=NOW
    )
    save_readings(olt.id, [reading(HERE, run_state="online", rx_power=-21.4)], now=LATER)

    onu = Onu.objects.select_related("reading").get()
    assert onu.description == "CLI-1"
    assert (onu.reading.run_state, onu.reading.state_since) == ("online", NOW)
    assert onu.reading.rx_power_dbm == -21.4
    assert onu.reading.distance_m == 1200
    assert OnuData.objects.get(oid="onu.rx_power").value == "-21.4"


def test_a_power_that_was_not_readable_is_no_power() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    save_readings(olt.id, [reading(HERE, rx_power=-21.0)], now=NOW)

    save_readings(olt.id, [reading(HERE, rx_power=None)], now=LATER)

    assert OnuReading.objects.get().rx_power_cdbm is None


def test_an_unchanged_poll_writes_no_reading(django_assert_max_num_queries: object) -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    readings = [reading(place, description="x", run_state="online") for place in (HERE, THERE)]
    save_readings(olt.id, readings, now=NOW)

    with django_assert_max_num_queries(2):  # type: ignore[operator]
        assert save_readings(olt.id, readings, now=LATER) == 0


def test_readings_of_unknown_places_are_left_out() -> None:
    olt = make_olt()

    assert save_readings(olt.id, [reading(HERE, run_state="online")], now=NOW) == 0


def test_a_place_that_no_chassis_has_is_not_storable() -> None:
    """A hostile index must not end the run on a database that checks its numbers."""
    assert is_storable(HERE)
    assert not is_storable(Place(0, 40_000, 0, 1))
    assert not is_storable(Place(0, 1, 0, 4_294_967_295))


def test_a_distance_beyond_the_column_is_left_out() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    save_readings(olt.id, [reading(HERE, distance=4_000_000_000), reading(HERE, distance=-1)], now=NOW)

    assert OnuReading.objects.get().distance_m is None
