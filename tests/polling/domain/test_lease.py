"""Leases: the owner asks every clock there is, a watcher only its own monotonic one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.lease import MAX_LEAD, HeldLease, LeaseWatch
from facho.polling.domain.ports import ClockReading

START = ClockReading(monotonic=100.0, boot=5_000.0, wall=1_700_000_000.0)


def after(monotonic: float, *, boot: float | None = None, wall: float | None = None) -> ClockReading:
    """What the clocks show so many seconds after the start; all the same unless said otherwise."""
    boot, wall = (monotonic if other is None else other for other in (boot, wall))
    return ClockReading(START.monotonic + monotonic, START.boot + boot, START.wall + wall)


def test_a_lease_lasts_from_the_beginning_of_its_renewal() -> None:
    lease = HeldLease(length_seconds=60, renewed_at=START)

    lease.renew(after(30))

    assert lease.is_certain(after(89.9))
    assert not lease.is_certain(after(90))


def test_a_late_answer_to_an_older_renewal_shortens_nothing() -> None:
    lease = HeldLease(length_seconds=60, renewed_at=after(30))

    lease.renew(START)

    assert lease.is_certain(after(89))


@pytest.mark.parametrize(
    "frozen",
    [after(1, wall=181), after(1, boot=181), after(1, wall=61, boot=181), after(1, wall=5)],
    ids=["paused guest, corrected", "suspended", "both", "a pause shorter than the lease"],
)
def test_a_machine_that_was_frozen_may_not_act_before_it_has_asked(frozen: ClockReading) -> None:
    """D7: a monotonic clock that stood still proves nothing."""
    lease = HeldLease(length_seconds=60, renewed_at=START)

    assert not lease.is_certain(frozen)


@pytest.mark.parametrize("wall", [-3_600.0, 10 + 60 * MAX_LEAD], ids=["set back", "disciplined"])
def test_a_wall_clock_that_is_set_back_or_disciplined_ends_no_lease(wall: float) -> None:
    lease = HeldLease(length_seconds=60, renewed_at=START)

    assert lease.is_certain(after(10, wall=wall))


def test_a_renewal_after_a_freeze_begins_anew() -> None:
    lease = HeldLease(length_seconds=60, renewed_at=START)

    lease.renew(after(1, wall=181))

    assert lease.is_certain(after(31, wall=211))


def test_a_counter_that_stands_still_dies_and_one_that_moves_lives() -> None:
    watch: LeaseWatch[int] = LeaseWatch()
    watch.observe({1: 5, 2: 5}, monotonic=0)
    watch.observe({1: 5, 2: 6}, monotonic=50)

    assert watch.dead([1, 2], after_seconds=60, monotonic=60) == [1]


def test_a_lease_that_ended_is_forgotten() -> None:
    watch: LeaseWatch[int] = LeaseWatch()
    watch.observe({1: 5}, monotonic=0)
    watch.observe({}, monotonic=10)
    watch.observe({1: 5}, monotonic=20)

    assert watch.dead([1], after_seconds=60, monotonic=70) == []


@given(st.floats(1, 100), st.lists(st.floats(0.01, 50), min_size=1, max_size=30), st.floats(0, 30))
def test_a_watcher_never_declares_dead_what_its_owner_still_believes_in(
    length: float, pauses: list[float], lag: float
) -> None:
    """Whatever the owner's renewals look like, its own belief ends before the watcher's patience does."""
    watch: LeaseWatch[int] = LeaseWatch()
    owner, now, counter = HeldLease(length, START), 0.0, 0
    watch.observe({1: 0}, monotonic=now)
    for pause in pauses:
        began_at, now = now + pause, now + pause
        if owner.is_certain(after(now)):
            counter += 1
            now += lag
            owner.renew(after(began_at))
            watch.observe({1: counter}, monotonic=now)
        if watch.dead([1], after_seconds=length, monotonic=now):
            assert not owner.is_certain(after(now))


@given(
    st.floats(1, 100),
    st.lists(st.tuples(st.floats(0.01, 50), st.floats(0, 300)), min_size=1, max_size=30),
    st.booleans(),
)
def test_nor_when_the_owner_is_frozen_again_and_again(
    length: float, pauses: list[tuple[float, float]], is_suspended: bool
) -> None:
    """Each pause passes on the owner's monotonic clock, each freeze only on its wall clock or boot time."""
    watch: LeaseWatch[int] = LeaseWatch()
    owner, own, true, counter = HeldLease(length, START), 0.0, 0.0, 0
    watch.observe({1: 0}, monotonic=0)
    for pause, freeze in pauses:
        own, true = own + pause, true + pause + freeze
        now = after(own, boot=true, wall=own) if is_suspended else after(own, boot=own, wall=true)
        if watch.dead([1], after_seconds=length, monotonic=true):
            assert not owner.is_certain(now)
        elif owner.is_certain(now):
            counter += 1
            owner.renew(now)
            watch.observe({1: counter}, monotonic=true)
