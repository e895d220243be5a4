"""OLTs that do not answer, one by one or all at once, and what is left of it when the network is back."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st
from outage_rows import OutageRows

from facho.polling.domain.outages import Cycle, OltVoice, OutageCause, OutageRecord, OutageScope, judge_silence

START = datetime(2030, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(minutes=5)
Ids = range | set[int]


class Fleet:
    """Some OLTs with a hundred ONUs each, looked at every five minutes."""

    def __init__(self, *, olts: int = 10) -> None:
        self.outages = OutageRows()
        self.look_number = 0
        self.voices = {olt_id: OltVoice(olt_id, None, None, 100) for olt_id in range(1, olts + 1)}

    @property
    def now(self) -> datetime:
        return START + self.look_number * INTERVAL

    @property
    def reported(self) -> list[tuple[OutageScope, int, bool]]:
        return [(outage.place.scope, outage.place.olt_id, outage.is_open) for outage in self.outages.reported]

    @property
    def network(self) -> OutageRecord:
        (outage,) = (o for o in self.outages.reported if o.place.scope is OutageScope.NETWORK)
        return outage

    def look(self, *, silent: Ids = range(0), heard: Ids = range(0), looks: int = 1) -> None:
        for _ in range(looks):
            self.look_number += 1
            for olt_id in silent:
                since = self.voices[olt_id].silent_since or self.now
                self.voices[olt_id] = self.voices[olt_id]._replace(silent_since=since)
            for olt_id in heard:
                self.voices[olt_id] = self.voices[olt_id]._replace(silent_since=None, answered_at=self.now)
            self.judge()

    def judge(self) -> None:
        rows = list(self.outages.rows.values())
        self.outages.apply(judge_silence(list(self.voices.values()), rows, Cycle(self.now, INTERVAL)))


def test_a_silent_olt_is_an_outage_until_it_answers() -> None:
    fleet = Fleet()

    fleet.look(silent={3}, looks=4)
    fleet.look(heard={3})

    (outage,) = fleet.outages.reported
    assert (outage.place.olt_id, outage.cause, outage.affected) == (3, OutageCause.OLT, 100)
    assert (outage.started_at, outage.ended_at) == (START + INTERVAL, START + 5 * INTERVAL)


def test_most_olts_silent_at_once_are_the_poller_without_a_network() -> None:
    fleet = Fleet()

    fleet.look(silent=range(1, 4))
    assert len(fleet.reported) == 3
    fleet.look(silent=range(4, 11))
    fleet.look(heard=range(1, 11))

    assert fleet.reported == [(OutageScope.NETWORK, 0, False)]
    assert (fleet.network.cause, fleet.network.affected, fleet.network.affected_olts) == (
        OutageCause.NETWORK,
        1_000,
        10,
    )
    assert (fleet.network.started_at, fleet.network.ended_at) == (START + INTERVAL, START + 3 * INTERVAL)


def test_half_of_the_olts_are_not_most() -> None:
    fleet = Fleet()

    fleet.look(silent=range(1, 6))

    assert {scope for scope, _, _ in fleet.reported} == {OutageScope.OLT}


def test_a_single_olt_is_no_network() -> None:
    fleet = Fleet(olts=1)

    fleet.look(silent={1})

    assert fleet.reported == [(OutageScope.OLT, 1, True)]


def test_olts_that_died_one_by_one_are_no_lost_network() -> None:
    fleet = Fleet()

    for olt_id in range(1, 11):
        fleet.look(silent={olt_id}, looks=3)

    assert {scope for scope, _, _ in fleet.reported[:8]} == {OutageScope.OLT}


def test_who_was_silent_before_and_who_stays_silent_after_has_an_outage_of_its_own() -> None:
    fleet = Fleet()
    fleet.look(silent={1}, looks=5)

    fleet.look(silent=range(2, 11), looks=3)
    fleet.look(heard=range(3, 11))

    assert fleet.reported == [(OutageScope.OLT, 1, True), (OutageScope.NETWORK, 0, False), (OutageScope.OLT, 2, True)]
    assert fleet.network.affected_olts == 9


def test_an_olt_that_is_asked_seldom_belongs_to_the_lost_network_all_the_same() -> None:
    fleet = Fleet()
    fleet.look(silent=range(1, 10), looks=5)

    fleet.look(silent={10})

    assert fleet.reported == [(OutageScope.NETWORK, 0, True)]
    assert fleet.network.affected_olts == 10


def test_a_network_that_flaps_is_one_outage() -> None:
    fleet = Fleet()
    for _ in range(3):
        fleet.look(silent=range(1, 11))
        fleet.look(heard=range(1, 11))

    assert fleet.reported == [(OutageScope.NETWORK, 0, False)]
    assert fleet.network.started_at == START + INTERVAL


def test_an_olt_that_nobody_asks_any_more_is_no_outage() -> None:
    fleet = Fleet()
    fleet.look(silent={3})

    del fleet.voices[3]
    fleet.look()

    assert fleet.reported == [(OutageScope.OLT, 3, False)]


looks = st.lists(st.tuples(st.sets(st.integers(1, 6)), st.sets(st.integers(1, 6))), max_size=30)


@given(looks)
def test_every_silent_olt_is_in_exactly_one_open_outage(steps: list[tuple[set[int], set[int]]]) -> None:
    fleet = Fleet(olts=6)

    for silent, heard in steps:
        fleet.look(silent=silent, heard=heard - silent)

        rows = fleet.outages.rows.values()
        of_olts = [row for row in rows if row.place.scope is OutageScope.OLT and row.is_open]
        networks = {row.outage_id for row in rows if row.place.scope is OutageScope.NETWORK and row.is_open}
        assert sorted(row.place.olt_id for row in of_olts) == [
            voice.olt_id for voice in fleet.voices.values() if voice.silent_since
        ]
        assert {row.part_of for row in of_olts} - {None} <= networks


@given(looks)
@example([({1, 2, 3, 4, 6}, set()), ({1, 5}, {3, 4, 6}), ({3, 4, 5, 6}, {1, 2})])
def test_looking_again_changes_nothing(steps: list[tuple[set[int], set[int]]]) -> None:
    fleet = Fleet(olts=6)

    for silent, heard in steps:
        fleet.look(silent=silent, heard=heard - silent)
        before = dict(fleet.outages.rows)
        fleet.judge()

        assert fleet.outages.rows == before
