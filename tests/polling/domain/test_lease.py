"""Leases as counters on monotonic clocks."""

from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.lease import HeldLease, LeaseWatch


def test_a_lease_lasts_from_the_beginning_of_its_renewal() -> None:
    lease = HeldLease(length_seconds=60, renewed_at=100)

    lease.renew(130)

    assert lease.is_valid(189.9)
    assert not lease.is_valid(190)


def test_a_late_answer_to_an_older_renewal_shortens_nothing() -> None:
    lease = HeldLease(length_seconds=60, renewed_at=130)

    lease.renew(100)

    assert lease.is_valid(189)


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
    owner, now, counter = HeldLease(length, 0.0), 0.0, 0
    watch.observe({1: 0}, monotonic=now)
    for pause in pauses:
        began_at, now = now + pause, now + pause
        if owner.is_valid(now):
            counter += 1
            now += lag
            owner.renew(began_at)
            watch.observe({1: counter}, monotonic=now)
        if watch.dead([1], after_seconds=length, monotonic=now):
            assert not owner.is_valid(now)
