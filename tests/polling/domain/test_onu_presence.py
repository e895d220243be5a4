"""Who is where after a walk, and who is gone: identities, moves, misses, and walks that are not believed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_presence import (
    MISSES_APART,
    KnownOnu,
    OnuEvidence,
    OnuIdentity,
    PresencePlan,
    Sign,
    Walk,
    find_evidence,
    plan_presence,
)
from facho.polling.domain.onu_state import OnuPlace

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + MISSES_APART
HERE, THERE, ELSEWHERE = (0, 1, 0, 1), (0, 1, 0, 2), (0, 2, 5, 1)
MAC = "02:00:00:00:00:01"
DUPLICATES = (EventKind.DUPLICATE_SERIAL, EventKind.DUPLICATE_MAC)


def walk(*found: tuple[OnuPlace, str], is_complete: bool = True, ports: Sequence[OnuPlace] = ()) -> Walk:
    identities = {place: OnuIdentity(serial) for place, serial in found}
    return Walk(identities, is_complete, frozenset(place[:3] for place in ports))


def onu(
    onu_id: int, place: OnuPlace, serial: str = "", *, mac: str = "", is_present: bool = True, misses: int = 0
) -> KnownOnu:
    return KnownOnu(onu_id, place, serial, mac, is_present, misses)


def missed(row: KnownOnu, *, at: datetime = NOW, is_present: bool = True) -> KnownOnu:
    """The row as a walk leaves it that did not find the ONU."""
    return row._replace(misses=row.misses + 1, missed_at=at, is_present=is_present)


def reported(plan: PresencePlan) -> list[tuple[EventKind, OnuPlace]]:
    return [(event.kind, event.place) for event in plan.events]


def street(count: int, *, misses: int = 0) -> list[KnownOnu]:
    return [onu(number, (0, 1, 0, number), f"S{number}", misses=misses) for number in range(1, count + 1)]


def all_of(onus: Sequence[KnownOnu]) -> Walk:
    return walk(*((one.place, one.serial) for one in onus))


def test_a_walk_that_finds_everyone_where_they_were_changes_nothing() -> None:
    known = street(20)

    assert plan_presence(known, all_of(known), now=NOW) == PresencePlan()


def test_an_unknown_serial_is_a_new_onu() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((HERE, "A"), (THERE, "B")), now=NOW)

    assert plan.new == ((THERE, OnuIdentity("B")),)
    assert reported(plan) == [(EventKind.NEW, THERE)]


def test_nobody_is_new_until_an_olt_was_walked_to_its_end() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((HERE, "A"), (THERE, "B")), now=NOW, is_first=True)

    assert plan.new == ((THERE, OnuIdentity("B")),)
    assert plan.events == ()


def test_an_onu_that_moved_keeps_its_row_and_tells_from_where() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((ELSEWHERE, "A")), now=NOW)

    (event,) = plan.events
    assert plan.updated == (onu(1, ELSEWHERE, "A"),)
    assert (event.kind, event.place, event.other_place) == (EventKind.MOVED, ELSEWHERE, HERE)


def test_two_onus_that_change_places_are_two_moves() -> None:
    plan = plan_presence([onu(1, HERE, "A"), onu(2, THERE, "B")], walk((HERE, "B"), (THERE, "A")), now=NOW)

    assert set(plan.updated) == {onu(1, THERE, "A"), onu(2, HERE, "B")}
    assert reported(plan) == [(EventKind.MOVED, HERE), (EventKind.MOVED, THERE)]


def test_the_second_complete_walk_without_an_onu_makes_it_absent() -> None:
    first = plan_presence([onu(1, HERE, "A"), onu(2, THERE, "B")], walk((HERE, "A")), now=NOW)
    second = plan_presence([onu(1, HERE, "A"), *first.updated], walk((HERE, "A")), now=LATER)

    assert first.updated == (missed(onu(2, THERE, "B")),)
    assert first.events == ()
    assert second.updated == (missed(first.updated[0], at=LATER, is_present=False),)
    assert reported(second) == [(EventKind.GONE, THERE)]


def test_misses_are_forgotten_when_the_onu_is_seen() -> None:
    plan = plan_presence([onu(1, HERE, "A", misses=1)], walk((HERE, "A"), is_complete=False), now=NOW)

    assert plan.updated == (onu(1, HERE, "A"),)
    assert plan.events == ()


def test_absence_is_judged_by_port() -> None:
    known = [onu(1, HERE, "A", misses=1), onu(2, ELSEWHERE, "B", misses=1)]

    plan = plan_presence(known, walk(is_complete=False, ports=[HERE]), now=NOW)

    assert reported(plan) == [(EventKind.GONE, HERE)]


def test_an_absent_onu_returns_as_itself() -> None:
    plan = plan_presence([onu(1, HERE, "A", is_present=False, misses=2)], walk((ELSEWHERE, "A")), now=NOW)

    (event,) = plan.events
    assert plan.updated == (onu(1, ELSEWHERE, "A"),)
    assert (event.kind, event.place, event.other_place) == (EventKind.RETURNED, ELSEWHERE, HERE)


def test_who_was_replaced_at_its_place_is_gone_at_once() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((HERE, "B")), now=NOW)

    assert plan.updated == (missed(onu(1, HERE, "A"), is_present=False),)
    assert plan.new == ((HERE, OnuIdentity("B")),)
    assert reported(plan) == [(EventKind.NEW, HERE), (EventKind.GONE, HERE)]


def test_a_broken_walk_neither_replaces_nor_moves_what_it_did_not_see() -> None:
    """It may be a move, or two ONUs with one serial: the port that it came from was not read to its end."""
    known = [onu(1, HERE, "A"), onu(2, ELSEWHERE, "B")]

    replaced = plan_presence(known, walk((HERE, "C"), is_complete=False), now=NOW)
    moved = plan_presence(known, walk((THERE, "B"), is_complete=False), now=NOW)

    assert replaced == PresencePlan(updated=(missed(known[0]),))
    assert moved == PresencePlan()


def test_whoever_waits_for_a_place_keeps_the_next_one_waiting() -> None:
    known = [onu(1, HERE, "A"), onu(2, THERE, "B")]

    plan = plan_presence(known, walk((HERE, "B"), (THERE, "C"), is_complete=False), now=NOW)

    assert plan == PresencePlan(updated=tuple(map(missed, known)))


def test_what_is_read_where_somebody_else_may_be_is_nobodys() -> None:
    rows = [onu(1, HERE, "A"), onu(1, HERE, "A", misses=1), onu(1, HERE, "A", is_present=False)]

    assert [row.can_be_read for row in rows] == [True, False, False]


def test_a_broken_walk_moves_whom_it_saw_replaced() -> None:
    known = [onu(1, HERE, "A"), onu(2, THERE, "B")]

    plan = plan_presence(known, walk((HERE, "B"), (THERE, "A"), is_complete=False), now=NOW)

    assert reported(plan) == [(EventKind.MOVED, HERE), (EventKind.MOVED, THERE)]


def test_who_moved_away_for_sure_leaves_a_place_that_waits_for_somebody_else() -> None:
    known = [onu(1, HERE, "A"), onu(2, ELSEWHERE, "B")]

    plan = plan_presence(known, walk((HERE, "B"), (THERE, "A"), is_complete=False), now=NOW)

    assert plan.updated == (onu(1, THERE, "A"),)
    assert plan.new == ()


def test_two_onus_with_one_serial_are_two_onus_and_reported_once() -> None:
    first = plan_presence([onu(1, HERE, "A")], walk((HERE, "A"), (THERE, "A")), now=NOW)
    known = [onu(1, HERE, "A"), onu(2, THERE, "A")]

    (new, double) = first.events
    assert first.new == ((THERE, OnuIdentity("A")),)
    assert (new.kind, new.place) == (EventKind.NEW, THERE)
    assert (double.kind, double.place, double.other_place) == (EventKind.DUPLICATE_SERIAL, THERE, HERE)
    assert plan_presence(known, walk((HERE, "A"), (THERE, "A")), now=NOW) == PresencePlan()


def test_two_onus_without_a_serial_and_with_one_hardware_address_are_reported_once() -> None:
    known = [onu(1, HERE, mac=MAC)]
    twice = Walk({HERE: OnuIdentity(mac=MAC), ELSEWHERE: OnuIdentity(mac=MAC)}, is_complete=True)

    first = plan_presence(known, twice, now=NOW)
    second = plan_presence([*known, onu(2, ELSEWHERE, mac=MAC)], twice, now=LATER)

    (_, double) = first.events
    assert reported(first) == [(EventKind.NEW, ELSEWHERE), (EventKind.DUPLICATE_MAC, ELSEWHERE)]
    assert double.other_place == HERE
    assert second == PresencePlan()


def test_onus_that_have_serials_may_share_a_hardware_address() -> None:
    """Cheap ones often do; a serial tells them apart."""
    twice = Walk({HERE: OnuIdentity("A", MAC), THERE: OnuIdentity("B", MAC)}, is_complete=True)

    plan = plan_presence([onu(1, HERE, "A", mac=MAC)], twice, now=NOW)

    assert reported(plan) == [(EventKind.NEW, THERE)]


@pytest.mark.parametrize("nothing", ["", "00:00:00:00:00:00", "FF:FF:FF:FF:FF:FF"])
def test_onus_without_any_name_are_no_duplicates_of_each_other(nothing: str) -> None:
    known = [onu(1, HERE, mac=nothing), onu(2, THERE, mac=nothing, is_present=False, misses=2)]

    plan = plan_presence(known, Walk({HERE: OnuIdentity(), THERE: OnuIdentity()}, is_complete=True), now=NOW)

    assert reported(plan) == [(EventKind.RETURNED, THERE)]


def test_one_of_two_with_one_serial_may_move() -> None:
    known = [onu(1, HERE, "A"), onu(2, THERE, "A")]

    plan = plan_presence(known, walk((HERE, "A"), (ELSEWHERE, "A")), now=NOW)

    assert plan.updated == (onu(2, ELSEWHERE, "A"),)
    assert reported(plan) == [(EventKind.MOVED, ELSEWHERE)]


def test_a_serial_that_turns_up_twice_elsewhere_is_nobody_we_know() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((THERE, "A"), (ELSEWHERE, "A")), now=NOW)

    assert plan.updated == (missed(onu(1, HERE, "A")),)
    assert len(plan.new) == 2


def test_present_comes_before_absent_when_a_serial_is_looked_up() -> None:
    known = [onu(1, HERE, "A"), onu(2, THERE, "A", is_present=False, misses=2)]

    plan = plan_presence(known, walk((THERE, "A")), now=NOW)

    assert plan.updated == (onu(1, THERE, "A"),)


@pytest.mark.parametrize("nothing", ["", "0000000000000000", "FFFFFFFFFFFFFFFF", "00:00:00:00:00:00"])
def test_onus_without_a_serial_are_known_by_their_place(nothing: str) -> None:
    known = [onu(1, HERE), onu(2, THERE)]

    assert plan_presence(known, walk((HERE, nothing), (THERE, nothing)), now=NOW) == PresencePlan()


def test_a_serial_that_could_not_be_read_is_no_other_onu() -> None:
    plan = plan_presence([onu(1, HERE, "A")], walk((HERE, "")), now=NOW)

    assert plan == PresencePlan()


def test_a_serial_that_is_reported_later_is_learned() -> None:
    plan = plan_presence([onu(1, HERE)], walk((HERE, "A")), now=NOW)

    assert plan == PresencePlan(updated=(onu(1, HERE, "A"),))


def test_an_onu_without_a_serial_is_followed_by_its_hardware_address() -> None:
    known = [onu(1, HERE, mac="02:00:00:00:00:01"), onu(2, THERE, "B", mac="02:00:00:00:00:02")]
    found = {THERE: OnuIdentity(mac="02:00:00:00:00:01"), ELSEWHERE: OnuIdentity(mac="02:00:00:00:00:02")}

    plan = plan_presence(known, Walk(found, is_complete=True), now=NOW)

    assert {(row.onu_id, row.place, row.serial) for row in plan.updated} == {(1, THERE, ""), (2, ELSEWHERE, "B")}


def test_two_serials_with_one_hardware_address_are_two_onus() -> None:
    known = [onu(1, HERE, "A", mac="02:00:00:00:00:01")]

    plan = plan_presence(known, Walk({HERE: OnuIdentity("B", "02:00:00:00:00:01")}, is_complete=True), now=NOW)

    assert reported(plan) == [(EventKind.NEW, HERE), (EventKind.GONE, HERE)]


def test_a_walk_that_suddenly_loses_most_is_held_and_the_next_confirms_it() -> None:
    known = street(20)

    held = plan_presence(known, all_of(known[:9]), now=NOW)
    rows = {row.onu_id: row for row in [*known, *held.updated]}
    confirmed = plan_presence(list(rows.values()), all_of(known[:9]), now=LATER)

    assert held.is_held
    assert held.events == ()
    assert all(row.is_present for row in held.updated)
    assert [event.kind for event in confirmed.events] == [EventKind.GONE] * 11


def test_a_held_walk_brings_nobody_new_either() -> None:
    """Another device may have answered at the address: every place has somebody else."""
    known = street(20)
    strangers = walk(*((one.place, f"X{one.onu_id}") for one in known))

    held = plan_presence(known, strangers, now=NOW)

    assert (held.is_held, held.new) == (True, ())
    assert plan_presence(held.updated, strangers, now=LATER).new != ()


def test_a_glitch_after_a_miss_makes_nobody_absent() -> None:
    known = [*street(20)[:19], street(20)[19]._replace(misses=1)]

    held = plan_presence(known, all_of(known[:2]), now=NOW)

    assert held.is_held
    assert all(row.misses == 1 for row in held.updated)
    assert plan_presence(known, all_of(known), now=NOW).events == ()


@pytest.mark.parametrize(("present", "lost", "is_held"), [(15, 7, False), (15, 8, True), (16, 8, False), (8, 7, False)])
def test_most_is_more_than_half_and_no_handful(present: int, lost: int, is_held: bool) -> None:
    known = street(present)

    assert plan_presence(known, all_of(known[lost:]), now=NOW).is_held is is_held


places = st.tuples(st.just(0), st.integers(1, 2), st.integers(0, 1), st.integers(1, 4))
serials = st.sampled_from(["", "00000000", "A", "B", "C", "D", "E"])
macs = st.sampled_from(["", "", "02:00:00:00:00:01", "02:00:00:00:00:02"])
findings = st.dictionaries(places, st.builds(OnuIdentity, serials, macs), max_size=10)


@st.composite
def inventories(draw: st.DrawFn) -> list[KnownOnu]:
    """Rows as a store may hold them: no two present ones at a place."""
    present = draw(st.lists(places, unique=True, max_size=8))
    absent = draw(st.lists(places, max_size=4))
    rows = [(place, True) for place in present] + [(place, False) for place in absent]
    return [
        KnownOnu(
            number,
            place,
            draw(st.sampled_from(["", "A", "B", "C", "D"])),
            draw(macs),
            is_present,
            draw(st.integers(0, 1)) if is_present else 2,
        )
        for number, (place, is_present) in enumerate(rows, start=1)
    ]


def after(known: Sequence[KnownOnu], plan: PresencePlan) -> list[KnownOnu]:
    """Apply a plan as a store does."""
    rows = {row.onu_id: row for row in [*known, *plan.updated]}
    first = max(rows, default=0) + 1
    added = [KnownOnu(number, place, *who) for number, (place, who) in enumerate(plan.new, start=first)]
    return [*rows.values(), *added]


@given(inventories(), findings, st.booleans(), st.sets(places.map(lambda place: place[:3])))
def test_no_plan_puts_two_onus_on_one_place(
    known: list[KnownOnu], found: Mapping[OnuPlace, OnuIdentity], is_complete: bool, ports: set[tuple[int, int, int]]
) -> None:
    plan = plan_presence(known, Walk(found, is_complete, frozenset(ports)), now=NOW)

    taken = [row.place for row in after(known, plan) if row.is_present]
    assert len(taken) == len(set(taken))


@given(inventories(), findings, st.sets(places.map(lambda place: place[:3])))
def test_nobody_leaves_a_port_that_was_not_read_to_its_end(
    known: list[KnownOnu], found: Mapping[OnuPlace, OnuIdentity], ports: set[tuple[int, int, int]]
) -> None:
    plan = plan_presence(known, Walk(found, is_complete=False, complete_ports=frozenset(ports)), now=NOW)

    before = {row.onu_id: row for row in known}
    for row in plan.updated:
        if before[row.onu_id].is_present and not row.is_present:
            assert before[row.onu_id].place[:3] in ports


@given(inventories(), findings)
def test_a_walk_that_was_believed_tells_nothing_new_the_next_time(
    known: list[KnownOnu], found: Mapping[OnuPlace, OnuIdentity]
) -> None:
    walked = Walk(found, is_complete=True)
    plan = plan_presence(known, walked, now=NOW)
    rows = after(known, plan)
    if plan.is_held:
        rows = after(rows, plan_presence(rows, walked, now=LATER))

    again = plan_presence(rows, walked, now=LATER)

    assert {event.kind for event in again.events} <= {EventKind.GONE}
    assert again.new == ()


@given(inventories(), findings)
def test_events_are_exactly_what_changed(known: list[KnownOnu], found: Mapping[OnuPlace, OnuIdentity]) -> None:
    plan = plan_presence(known, Walk(found, is_complete=True), now=NOW)

    before = {row.onu_id: row for row in known}
    changed = {
        (EventKind.GONE, row.onu_id)
        if not row.is_present
        else (EventKind.RETURNED, row.onu_id)
        if not before[row.onu_id].is_present
        else (EventKind.MOVED, row.onu_id)
        for row in plan.updated
        if (row.is_present, row.place) != (before[row.onu_id].is_present, before[row.onu_id].place)
    }
    expected = changed | {(EventKind.NEW, place) for place, _ in plan.new}
    events = [event for event in plan.events if event.kind not in DUPLICATES]
    assert {(event.kind, event.onu_id or event.place) for event in events} == expected
    assert len(events) == len(expected)


@pytest.mark.parametrize(
    ("shown", "evidence"),
    [
        ((0, 0, 0), None),
        ((0, 0, 7), OnuEvidence(Sign.KNOWN, 7)),
        ((0, 125, 7), OnuEvidence(Sign.COUNTED, 125)),
        ((3, 125, 7), OnuEvidence(Sign.UNPLACED, 3)),
    ],
)
def test_the_strongest_sign_of_onus_is_the_evidence(shown: tuple[int, int, int], evidence: OnuEvidence | None) -> None:
    unplaced, counted, known = shown

    assert find_evidence(unplaced=unplaced, counted=counted, known=known) == evidence
