"""Who is where after a walk, as rows and as a timeline."""

from datetime import timedelta

import pytest
from onu_world import ELSEWHERE, HERE, THERE, after, poll, present, reading, reported, street, walk

from facho.onus.events import describe_event
from facho.onus.models import OltMemory, Onu, OnuEvent, OnuReading, PonPort
from facho.onus.store import is_storable, load_places, save_inventory
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.vendors.index import Place
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db


def test_a_walk_finds_onus_and_their_ports() -> None:
    olt = make_olt()

    walk(olt, {HERE: "HWTC1", ELSEWHERE: "HWTC2"})

    assert present(olt) == {HERE: "HWTC1", ELSEWHERE: "HWTC2"}
    assert load_places(olt.id) == [HERE, ELSEWHERE]
    assert PonPort.objects.count() == 2
    assert OnuReading.objects.filter(run_state="unknown").count() == 2


def test_whoever_is_found_by_the_first_walks_is_not_new() -> None:
    olt = make_olt()

    walk(olt, {HERE: "HWTC1"}, is_complete=False)
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2", ELSEWHERE: "HWTC3"}, now=after(1))

    assert reported() == [("new", ELSEWHERE)]
    assert OnuEvent.objects.get().onu.serial == "HWTC3"


def test_an_onu_that_moved_keeps_its_row_and_stands_in_the_timelines_of_both_ports() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    row = Onu.objects.get()
    poll(olt, reading(HERE, run_state="online", rx_power=-20.0))

    walk(olt, {ELSEWHERE: "HWTC1"}, now=after(1))

    event = OnuEvent.objects.get()
    assert present(olt) == {ELSEWHERE: "HWTC1"}
    assert Onu.objects.get().id == row.id == event.onu_id
    assert (event.kind, str(event.pon_port), str(event.other_port), event.other_number) == (
        "moved",
        "0/2/5",
        "0/1/0",
        1,
    )
    # What arrives there cannot be compared with what arrived here.
    assert OnuReading.objects.get().power_reference_cdbm is None


def test_two_onus_that_changed_places_keep_their_rows() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    rows = dict(Onu.objects.values_list("serial", "id"))

    walk(olt, {HERE: "HWTC2", THERE: "HWTC1"})

    assert present(olt) == {HERE: "HWTC2", THERE: "HWTC1"}
    assert dict(Onu.objects.values_list("serial", "id")) == rows


def test_an_onu_replaced_at_its_place_leaves_at_once_and_the_newcomer_stays() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    for number in range(1, 4):
        walk(olt, {HERE: "HWTC9", THERE: "HWTC2"}, now=after(number))

    assert present(olt) == {HERE: "HWTC9", THERE: "HWTC2"}
    assert Onu.objects.get(serial="HWTC1").absent_since == after(1)
    assert reported() == [("new", HERE), ("gone", HERE)]


def test_a_broken_walk_replaces_nobody_and_what_is_read_there_is_nobodys() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    walk(olt, {HERE: "HWTC9"}, is_complete=False, now=after(1))
    poll(olt, reading(HERE, run_state="online"), now=after(1))

    assert present(olt) == {HERE: "HWTC1"}
    assert load_places(olt.id) == []
    assert OnuReading.objects.get().run_state == "unknown"


def test_two_onus_with_one_serial_are_both_kept_and_reported_once() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})

    for number in (1, 2):
        walk(olt, {HERE: "HWTC1", THERE: "HWTC1"}, now=after(number))

    assert present(olt) == {HERE: "HWTC1", THERE: "HWTC1"}
    assert reported() == [("new", THERE), ("duplicate_serial", THERE)]
    assert OnuEvent.objects.get(kind="duplicate_serial").other_number == HERE.onu


def test_two_onus_of_epon_with_one_hardware_address_are_both_kept_and_reported_once() -> None:
    olt = make_olt()
    one = OnuIdentity(mac="02:00:00:00:00:01")
    save_inventory(olt.id, Walk({HERE: one}, is_complete=True), now=NOW)

    for number in (1, 2):
        save_inventory(olt.id, Walk({HERE: one, ELSEWHERE: one}, is_complete=True), now=after(number))

    assert Onu.objects.filter(is_present=True, mac=one.mac).count() == 2
    assert reported() == [("new", ELSEWHERE), ("duplicate_mac", ELSEWHERE)]
    event = OnuEvent.objects.select_related("other_port").get(kind="duplicate_mac")
    assert describe_event(event) == "The same hardware address is also at 0/1/0/1"


def test_onus_without_a_serial_are_known_by_hardware_address_else_by_place() -> None:
    olt = make_olt()
    first = {HERE: OnuIdentity(mac="02:00:00:00:00:01"), THERE: OnuIdentity()}
    save_inventory(olt.id, Walk(first, is_complete=True), now=NOW)

    second = {ELSEWHERE: OnuIdentity(mac="02:00:00:00:00:01"), THERE: OnuIdentity()}
    save_inventory(olt.id, Walk(second, is_complete=True), now=after(1))

    assert Onu.objects.count() == 2
    assert reported() == [("moved", ELSEWHERE)]


def test_one_complete_walk_without_an_onu_does_not_make_it_absent_but_the_second_does() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    walk(olt, {HERE: "HWTC1"}, now=after(1))
    assert len(present(olt)) == 2
    walk(olt, {HERE: "HWTC1"}, now=after(2))

    assert present(olt) == {HERE: "HWTC1"}
    assert reported() == [("gone", THERE)]


def test_a_retry_seconds_before_the_next_slot_makes_nobody_absent() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    for seconds in (-20, 0, 20):
        walk(olt, {HERE: "HWTC1"}, now=after(1) + timedelta(seconds=seconds))
    missed = Onu.objects.get(serial="HWTC2")
    assert (missed.is_present, missed.misses, missed.missed_at) == (True, 1, after(1) - timedelta(seconds=20))
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"}, now=after(2))

    assert Onu.objects.get(serial="HWTC2", missed_at=None, misses=0).is_present
    assert reported() == []


def test_a_broken_walk_makes_absent_whose_port_it_read_to_the_end() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2", ELSEWHERE: "HWTC3"})

    for number in (1, 2):
        found = Walk({HERE: OnuIdentity("HWTC1")}, is_complete=False, complete_ports=frozenset({HERE[:3]}))
        save_inventory(olt.id, found, now=after(number))

    assert present(olt) == {HERE: "HWTC1", ELSEWHERE: "HWTC3"}


def test_a_broken_walk_that_says_nothing_of_ports_never_makes_an_onu_absent() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})

    for _ in range(5):
        walk(olt, {HERE: "HWTC1"}, is_complete=False)

    assert len(present(olt)) == 2


def test_an_absent_onu_returns_as_itself() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    for number in (1, 2):
        walk(olt, {HERE: "HWTC1"}, now=after(number))

    walk(olt, {HERE: "HWTC1", ELSEWHERE: "HWTC2"}, now=after(3))

    assert present(olt) == {HERE: "HWTC1", ELSEWHERE: "HWTC2"}
    assert Onu.objects.count() == 2
    assert reported() == [("gone", THERE), ("returned", ELSEWHERE)]


def test_what_was_known_of_an_onu_before_it_was_away_is_not_its_state_since_then() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    poll(olt, reading(HERE, run_state="online"), reading(THERE, run_state="online"))
    for number in (1, 2):
        walk(olt, {HERE: "HWTC1"}, now=after(number))

    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"}, now=after(500))
    returned = OnuReading.objects.get(onu__serial="HWTC2")
    poll(olt, reading(HERE, run_state="online"), reading(THERE, run_state="online"), now=after(500))

    assert (returned.run_state, returned.state_since) == ("unknown", None)
    assert OnuReading.objects.get(onu__serial="HWTC2").state_since == after(500)
    assert OnuReading.objects.get(onu__serial="HWTC1").state_since == NOW
    assert [kind for kind, _ in reported()] == ["gone", "returned"]


def test_a_walk_that_loses_most_is_held_back_until_the_next_one_confirms_it() -> None:
    olt = make_olt()
    onus = street(20)
    few = dict(list(onus.items())[:5])
    walk(olt, onus)

    walk(olt, few, now=after(1))
    memory = OltMemory.objects.get()
    assert (len(present(olt)), memory.held_at, memory.walked_at) == (20, after(1), NOW)
    walk(olt, few, now=after(2))

    assert present(olt) == few
    assert [kind for kind, _ in reported()] == ["gone"] * 15
    assert OltMemory.objects.get().held_at is None


def test_an_agent_with_empty_tables_makes_nobody_absent_until_it_has_them_for_a_day() -> None:
    olt = make_olt()
    onus = street(12)
    walk(olt, onus)

    for number in range(1, 6):
        walk(olt, {}, now=after(number))
    assert (present(olt), len(load_places(olt.id)), reported()) == (onus, 12, [])
    for number in (300, 301):
        walk(olt, {}, now=after(number))

    assert [kind for kind, _ in reported()] == ["gone"] * 12
    assert OltMemory.objects.get().held_at is None


def test_a_walk_costs_a_handful_of_statements_whatever_the_number_of_onus(
    django_assert_max_num_queries: object,
) -> None:
    olt = make_olt()
    onus = street(300)
    moved = {Place(0, 1, 1, place.onu): serial for place, serial in onus.items()}

    with django_assert_max_num_queries(9):  # type: ignore[operator]
        walk(olt, onus)
    with django_assert_max_num_queries(4):  # type: ignore[operator]
        walk(olt, onus)
    with django_assert_max_num_queries(10):  # type: ignore[operator]
        walk(olt, moved)

    assert present(olt) == moved


def test_a_place_that_no_chassis_has_is_not_storable() -> None:
    """A hostile index must not end the run on a database that checks its numbers."""
    assert is_storable(HERE)
    assert not is_storable(Place(0, 40_000, 0, 1))
    assert not is_storable(Place(0, 1, 0, 4_294_967_295))
