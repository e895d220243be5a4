"""Hours of a troubled fleet in virtual time: counted to the unit, judged at once, and foreseen.

`make bench` plays a week of a hundred OLTs.
"""

from datetime import timedelta

import pytest
from quota_truth import NodeTruth, measure_foresight, measure_lateness, miscounted, settled_books
from virtual_fleet import make_fleet
from virtual_quotas import VIOLATED, QuotaNetwork
from virtual_workload import START, NodeSpec, OltSpec, Workload

from facho.polling.domain.quota import QuotaState
from facho.polling.domain.schedule import HOUR

pytestmark = pytest.mark.slow

HOURS = 20
FORESEEN = ("any scale", "around a quarter")


@pytest.fixture(scope="module", params=FORESEEN)
def network(request: pytest.FixtureRequest) -> QuotaNetwork:
    """A part of a day, of which the last three hours only let the runs of the others end."""
    network = QuotaNetwork(*make_fleet(20, hours=HOURS, lengths=request.param, seed=1))
    network.play()
    return network


def test_the_rules_count_every_slot_as_the_journal_does(network: QuotaNetwork) -> None:
    """To the unit, and at no look did an hour owe more or less."""
    assert len(settled_books(network)) > 1_000
    assert miscounted(network) == []


def test_what_was_lost_for_certain_is_raised_within_a_minute_of_the_hour(network: QuotaNetwork) -> None:
    assert measure_lateness(network) <= 60


def test_exactly_the_hours_that_fell_short_are_violated(network: QuotaNetwork) -> None:
    """A run that ends well after its quota was given up changes nothing any more, so it has no part in this."""
    truths = {node.node_id: NodeTruth(network, node) for node in network.nodes}
    for book in settled_books(network):
        completed, failed, skipped = truths[book.node.node_id].counts(book.hour)
        required = completed + failed + skipped
        is_short = required > 0 and completed / required < 0.8
        gave_up = book.raised_at is not None and book.raised_at >= book.hour.end + book.node.grid.interval
        assert book.raised_at is not None if is_short else book.raised_at is None or gave_up


def test_a_dead_olt_is_violated_and_never_adjusted(network: QuotaNetwork) -> None:
    dead = [
        book
        for book in settled_books(network)
        for begin, end in book.node.olt.spec.silent
        if START + timedelta(seconds=begin) <= book.hour.start - timedelta(minutes=10)
        and book.hour.end <= START + timedelta(seconds=end)
        and book.tally.required
    ]

    assert {book.state for book in dead} <= VIOLATED
    assert QuotaState.ADJUSTED not in {book.state for book in network.books.values()}


def test_most_violations_are_announced_in_time_and_few_for_nothing(network: QuotaNetwork) -> None:
    foresight = measure_foresight(network)

    print(foresight, f"{foresight.share_reported:.1%} reported in time, {foresight.share_false:.1%} false")  # noqa: T201
    assert foresight.with_early_cause > 40
    assert foresight.share_reported >= 0.9
    assert foresight.share_false <= 0.1


@pytest.mark.parametrize("interval", [420, 7_200])
def test_an_interval_that_does_not_fit_the_hour_raises_no_violation(interval: int) -> None:
    nodes = tuple(NodeSpec(interval, 30, offset_seconds=offset) for offset in (0, 1, interval // 3, interval - 1))
    network = QuotaNetwork(Workload((OltSpec(nodes),), pollers=1, hours=48), {})
    network.play()

    books = settled_books(network)

    assert {book.tally.required for book in books if book.hour.start > START + 2 * HOUR} == (
        {8, 9} if interval == 420 else {0, 1}
    )
    assert [book for book in books if book.state is not QuotaState.COMPLETED or book.was_announced] == []
