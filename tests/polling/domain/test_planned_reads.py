"""Who of those that wait to have one ONU read gets a poller: the oldest of each OLT, by its group."""

from datetime import timedelta

from facho.polling.domain.planning import WantedRead, plan_reads
from factories import NOW


def wish(onu_id: int, olt_id: int, *, seconds: int = 0, group: str = "") -> WantedRead:
    return WantedRead(onu_id, olt_id, NOW + timedelta(seconds=seconds), group)


def test_the_oldest_wish_of_each_free_olt_gets_a_poller() -> None:
    wanted = [wish(1, 7, seconds=5), wish(2, 7), wish(3, 8), wish(4, 9)]

    starts = plan_reads(wanted, free_pollers={"": [0, 1, 2]}, busy_olts=[9])

    assert [(start.read.read_id, start.poller_id) for start in starts] == [(2, 0), (3, 1)]


def test_without_a_free_poller_nobody_starts() -> None:
    assert plan_reads([wish(1, 7)], free_pollers={"": []}, busy_olts=[]) == ()


def test_groups_are_kept_apart_where_there_are_any() -> None:
    wanted = [wish(1, 7, group="south"), wish(2, 8, group="nowhere"), wish(3, 9)]

    grouped = plan_reads(wanted, free_pollers={"": [0], "south": [5]}, busy_olts=[])
    shared = plan_reads(wanted, free_pollers={"": [0, 1, 2]}, busy_olts=[])

    assert [(start.read.read_id, start.poller_id, start.group) for start in grouped] == [(1, 5, "south"), (3, 0, "")]
    assert [start.group for start in shared] == ["", "", ""]
