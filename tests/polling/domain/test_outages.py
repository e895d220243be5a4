"""Many faults as one outage: sizes, causes, late arrivals, repairs, flapping, and all from rows alone."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_rows import OutageRows

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.domain.outages import (
    Cycle,
    OutageCause,
    OutageMember,
    OutagePlace,
    OutageRecord,
    OutageScope,
    judge_ports,
    probable_cause,
)

START = datetime(2030, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(minutes=5)
OLT = 4
UP, DOWN = RunState.ONLINE, RunState.OFFLINE
LOS, GASP = DownCause.LOS, DownCause.DYING_GASP
Ids = range | list[int]


class Network:
    """The ONUs of one OLT, polled every five minutes; an ONU's id says where it hangs: card, port, number."""

    def __init__(self, *, ports: tuple[int, ...] = (10,), onus: int = 20) -> None:
        self.poll_number = 0
        self.outages = OutageRows()
        self.members = {
            port * 100 + number: OutageMember(port * 100 + number, (0, port // 10, port % 10, number), UP, None, None)
            for port in ports
            for number in range(onus)
        }

    @property
    def now(self) -> datetime:
        return START + self.poll_number * INTERVAL

    @property
    def reported(self) -> list[OutageRecord]:
        return self.outages.reported

    @property
    def only(self) -> OutageRecord:
        (outage,) = self.reported
        return outage

    def poll(self, *, down: Ids = range(0), up: Ids = range(0), cause: DownCause | None = LOS, polls: int = 1) -> None:
        self.poll_number += 1
        for onu_id in [*down, *up]:
            state = DOWN if onu_id in down else UP
            if self.members[onu_id].state is not state:
                self.members[onu_id] = self.members[onu_id]._replace(
                    state=state, state_since=self.now, cause=cause if state is DOWN else self.members[onu_id].cause
                )
        self.judge()
        for _ in range(polls - 1):
            self.poll_number += 1
            self.judge()

    def judge(self) -> None:
        rows = [
            member._replace(outage_id=self.outages.outage_of.get(member.onu_id)) for member in self.members.values()
        ]
        self.outages.apply(judge_ports(OLT, rows, list(self.outages.rows.values()), Cycle(self.now, INTERVAL)))


PORT = OutagePlace(OutageScope.PON, OLT, 0, 1, 0)
ALL = range(1000, 1020)


def test_an_outage_after_the_clock_was_set_back_continues_none_that_ended_in_the_future() -> None:
    net = Network()
    net.poll_number = 50
    net.poll(down=ALL)
    net.poll(up=ALL)

    net.poll_number = 20
    net.poll(down=ALL)

    first, second = net.reported
    assert (first.is_open, second.is_open) == (True, False)
    assert first.started_at == START + 21 * INTERVAL


def test_onus_whose_ports_nobody_knows_are_in_no_outage_together() -> None:
    network = Network(ports=(10, 11))
    network.members = {onu_id: member._replace(is_port_known=False) for onu_id, member in network.members.items()}

    network.poll(down=list(network.members))

    assert network.reported == []


def test_a_port_that_goes_dark_is_one_outage_from_its_first_poll_to_its_last() -> None:
    net = Network()

    net.poll(down=ALL)
    net.poll(polls=3)
    net.poll(up=ALL)

    outage = net.only
    assert (outage.place, outage.cause, outage.affected, outage.down) == (PORT, OutageCause.FIBRE, 20, 0)
    assert (outage.started_at, outage.ended_at) == (START + INTERVAL, START + 5 * INTERVAL)


def test_a_street_without_power_is_an_outage_though_most_of_its_port_is_online() -> None:
    net = Network()

    net.poll(down=ALL[:6], cause=GASP)

    assert (net.only.cause, net.only.affected) == (OutageCause.POWER, 6)


@pytest.mark.parametrize(("onus", "lost", "is_outage"), [(20, 1, 0), (20, 2, 0), (20, 3, 1), (60, 5, 0), (60, 6, 1)])
def test_a_few_onus_are_no_outage(onus: int, lost: int, is_outage: bool) -> None:
    net = Network(onus=onus)

    net.poll(down=range(1000, 1000 + lost))

    assert len(net.reported) == is_outage


def test_whoever_was_down_before_does_not_make_it_an_outage() -> None:
    net = Network(onus=60)
    for number in range(10):
        net.poll(down=[1000 + number], polls=3)

    assert net.reported == []


def test_what_nobody_saw_go_is_no_outage() -> None:
    net = Network()
    net.members = {onu_id: member._replace(state=DOWN) for onu_id, member in net.members.items()}

    net.poll()

    assert net.reported == []


def test_arrivals_of_the_next_poll_join_and_later_ones_do_not() -> None:
    net = Network()

    net.poll(down=ALL[:5])
    net.poll(down=ALL[5:9])
    net.poll(down=ALL[9:10])

    assert (net.only.affected, net.only.started_at) == (9, START + INTERVAL)


def test_two_polls_may_make_one_outage() -> None:
    net = Network()

    net.poll(down=ALL[:2])
    assert net.reported == []
    net.poll(down=ALL[2:4])

    assert (net.only.affected, net.only.started_at) == (4, START + INTERVAL)


def test_a_second_burst_extends_what_is_open() -> None:
    net = Network()
    net.poll(down=ALL[:5], polls=6)

    net.poll(down=ALL[5:])

    assert (net.only.affected, net.only.down) == (20, 20)


def test_a_partial_repair_keeps_it_open_until_the_rest_is_no_outage_by_itself() -> None:
    net = Network()
    net.poll(down=ALL)

    net.poll(up=ALL[:15])
    assert (net.only.ended_at, net.only.down) == (None, 5)
    net.poll(up=ALL[15:18])

    assert (net.only.ended_at, net.only.down) == (net.now, 2)


def test_a_small_outage_ends_when_most_are_back() -> None:
    net = Network()
    net.poll(down=ALL[:3])

    net.poll(up=ALL[:1])
    assert net.only.is_open
    net.poll(up=ALL[1:2])

    assert not net.only.is_open


def test_onus_that_left_the_port_are_not_down_there() -> None:
    net = Network()
    net.poll(down=ALL)

    net.members = {onu_id: member for onu_id, member in net.members.items() if onu_id in ALL[:1]}
    net.poll()

    assert not net.only.is_open


def test_a_port_without_onus_ends_its_outage() -> None:
    net = Network()
    net.poll(down=ALL)

    net.members = {}
    net.poll()

    assert not net.only.is_open


def test_an_outage_that_comes_back_soon_is_the_same_one() -> None:
    net = Network()
    for _ in range(4):
        net.poll(down=ALL)
        net.poll(up=ALL)

    assert (net.only.affected, net.only.started_at, net.only.ended_at) == (20, START + INTERVAL, net.now)


def test_an_outage_that_comes_back_later_is_another_one() -> None:
    net = Network()
    net.poll(down=ALL)
    net.poll(up=ALL, polls=8)

    net.poll(down=ALL)

    assert [outage.is_open for outage in net.reported] == [False, True]


def test_a_cause_that_is_reported_later_changes_the_outage() -> None:
    net = Network()
    net.poll(down=ALL, cause=None)
    assert net.only.cause is OutageCause.UNKNOWN

    net.members = {onu_id: member._replace(cause=GASP) for onu_id, member in net.members.items()}
    net.poll()

    assert net.only.cause is OutageCause.POWER


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([GASP, GASP, LOS], OutageCause.POWER),
        ([DownCause.POWER_OFF, GASP, None], OutageCause.POWER),
        ([GASP, LOS, LOS], OutageCause.FIBRE),
        ([DownCause.LOF, LOS, DownCause.SIGNAL_FAIL, None], OutageCause.FIBRE),
        ([GASP, GASP, LOS, LOS], OutageCause.UNKNOWN),
        ([LOS, None, None], OutageCause.UNKNOWN),
        ([DownCause.DEACTIVATED] * 3, OutageCause.UNKNOWN),
    ],
)
def test_the_majority_tells_the_cause(causes: list[DownCause | None], expected: OutageCause) -> None:
    assert probable_cause(OutageScope.PON, causes) is expected


def everyone(*ports: int) -> list[int]:
    return [port * 100 + number for port in ports for number in range(20)]


def test_all_ports_of_a_card_are_the_card() -> None:
    net = Network(ports=(10, 11, 12, 20))

    net.poll(down=everyone(10, 11, 12))

    assert net.only.place == OutagePlace(OutageScope.CARD, OLT, 0, 1)
    assert (net.only.cause, net.only.affected) == (OutageCause.CARD, 60)


def test_a_card_whose_customers_say_farewell_has_no_power_around_it() -> None:
    net = Network(ports=(10, 11))

    net.poll(down=everyone(10, 11), cause=GASP)

    assert (net.only.place.scope, net.only.cause) == (OutageScope.CARD, OutageCause.POWER)


def test_some_ports_of_a_card_are_ports() -> None:
    net = Network(ports=(10, 11, 12))

    net.poll(down=everyone(10, 12))

    assert [outage.place.port for outage in net.reported] == [0, 2]


def test_a_card_seen_in_two_polls_takes_in_the_ports_that_were_seen_first() -> None:
    net = Network(ports=(10, 11, 12))

    net.poll(down=everyone(10))
    net.poll(down=everyone(11, 12))

    assert (net.only.place.scope, net.only.affected, net.only.started_at) == (
        OutageScope.CARD,
        60,
        START + INTERVAL,
    )
    assert [row.part_of for row in net.outages.rows.values() if row.place.scope is OutageScope.PON] == [
        net.only.outage_id
    ]


def test_a_port_that_was_out_long_before_its_card_stays_an_outage_of_its_own() -> None:
    net = Network(ports=(10, 11, 12))
    net.poll(down=everyone(10), polls=9)

    net.poll(down=everyone(11, 12))
    net.poll(up=everyone(10))
    net.poll(up=everyone(11, 12))

    assert [(o.place.scope, o.affected, o.ended_at) for o in net.reported] == [
        (OutageScope.PON, 20, net.now - INTERVAL),
        (OutageScope.CARD, 40, net.now),
    ]


def test_a_card_that_is_repaired_port_by_port_ends_with_the_last() -> None:
    net = Network(ports=(10, 11, 12))
    net.poll(down=everyone(10, 11, 12))

    net.poll(up=everyone(10, 11))
    assert (net.only.is_open, net.only.down) == (True, 20)
    net.poll(up=everyone(12))

    assert net.only.ended_at == net.now


def test_ports_of_one_onu_do_not_make_a_card() -> None:
    net = Network(ports=(10, 11), onus=1)

    net.poll(down=[1000, 1100])

    assert net.reported == []


def test_outages_of_other_olts_are_left_alone() -> None:
    net = Network()
    net.poll(down=ALL)
    stranger = replace(net.only, place=net.only.place._replace(olt_id=9), outage_id=77)

    assert judge_ports(OLT, [], [stranger], Cycle(net.now, INTERVAL)) == []


actions = st.lists(
    st.tuples(st.sets(st.sampled_from(everyone(10, 11, 20)), max_size=60), st.booleans(), st.sampled_from([LOS, GASP])),
    max_size=25,
)


@given(actions)
def test_whatever_happens_outages_agree_with_the_rows(steps: list[tuple[set[int], bool, DownCause]]) -> None:
    net = Network(ports=(10, 11, 20))

    for onus, goes_down, cause in steps:
        net.poll(down=sorted(onus) if goes_down else [], up=[] if goes_down else sorted(onus), cause=cause)

        down_by_outage = Counter(
            net.outages.outage_of[member.onu_id]
            for member in net.members.values()
            if member.state is DOWN and member.onu_id in net.outages.outage_of
        )
        for outage_id, outage in net.outages.rows.items():
            if outage.is_open:
                assert outage.down == down_by_outage[outage_id] <= outage.affected
                assert outage.down >= 1
        members = Counter(net.outages.outage_of.values())
        assert all(members[outage_id] <= row.affected for outage_id, row in net.outages.rows.items())


@given(actions)
def test_judging_the_same_rows_again_changes_nothing(steps: list[tuple[set[int], bool, DownCause]]) -> None:
    """A restart between two polls is no event."""
    net = Network(ports=(10, 11, 20))

    for onus, goes_down, cause in steps:
        net.poll(down=sorted(onus) if goes_down else [], up=[] if goes_down else sorted(onus), cause=cause)
        before = dict(net.outages.rows)
        net.judge()

        assert net.outages.rows == before


@given(st.sets(st.sampled_from(range(20)), min_size=3), st.sampled_from([LOS, GASP]), st.integers(1, 20))
def test_whoever_goes_and_comes_together_is_one_outage(lost: set[int], cause: DownCause, polls: int) -> None:
    net = Network()
    ids = [1000 + number for number in sorted(lost)]

    net.poll(down=ids, cause=cause, polls=polls)
    net.poll(up=ids)

    assert (net.only.affected, net.only.ended_at) == (len(ids), net.now)
