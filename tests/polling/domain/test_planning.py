"""Which due nodes start, in which order, and why the others wait (decision D11)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.planning import DueNode, WaitReason, order_between_olts, order_within_olt, plan_tick
from factories import NOW, due_node


def test_second_node_of_a_busy_olt_waits() -> None:
    """S0-02, S0-13, S1-01, S4-15."""
    first, second = due_node(olt_id=7), due_node(olt_id=7)

    plan = plan_tick([first, second], free_pollers=[0, 1], busy_olts=[], now=NOW)

    assert [assignment.node for assignment in plan.start] == [first]
    assert plan.waiting == ((second, WaitReason.OLT_BUSY),)


def test_a_free_poller_receives_a_node_at_once_and_the_rest_queue() -> None:
    """S0-12, S0-23."""
    nodes = [due_node(olt_id=n) for n in range(3)]

    plan = plan_tick(nodes, free_pollers=[4, 9], busy_olts=[], now=NOW)

    assert [(a.node, a.poller_id) for a in plan.start] == [(nodes[0], 4), (nodes[1], 9)]
    assert plan.waiting == ((nodes[2], WaitReason.NO_POLLER),)


def test_an_olt_that_is_held_starts_nothing() -> None:
    node = due_node(olt_id=7)

    plan = plan_tick([node], free_pollers=[0], busy_olts=[7], now=NOW)

    assert plan.start == ()
    assert plan.waiting == ((node, WaitReason.OLT_BUSY),)


def test_discovery_goes_before_get_when_the_olt_keeps_up() -> None:
    """S1-04, S4-10, S4-16."""
    get = due_node(query_type=QueryType.GET, late_seconds=200)
    discovery = due_node(query_type=QueryType.DISCOVERY)

    assert order_within_olt([get, discovery], NOW) == [discovery, get]


def test_a_starving_node_goes_before_discovery() -> None:
    """D11: nothing starves on an OLT that cannot keep up."""
    starving = due_node(query_type=QueryType.BULK, late_seconds=700)
    discovery = due_node(query_type=QueryType.DISCOVERY)

    assert order_within_olt([discovery, starving], NOW) == [starving, discovery]


def test_a_run_that_a_person_asked_for_goes_first() -> None:
    asked = due_node(query_type=QueryType.BULK, is_run_now=True)
    starving = due_node(late_seconds=3_000)

    assert order_within_olt([starving, asked], NOW)[0] == asked
    assert order_between_olts([starving, asked], NOW)[0] == asked


@pytest.mark.parametrize(
    ("late_seconds", "delay_seconds", "is_delayed"),
    [(-5, 0, False), (0, 0, False), (1, 1, False), (300, 300, False), (300.001, 300.001, True), (900, 900, True)],
)
def test_a_node_is_delayed_when_it_is_late_by_more_than_its_interval(
    late_seconds: float, delay_seconds: float, is_delayed: bool
) -> None:
    """S0-09: a whole interval late is not delayed yet, and who is early is not late at all."""
    node = due_node(late_seconds=late_seconds, interval_seconds=300)

    assert node.delay(NOW) == timedelta(seconds=delay_seconds)
    assert node.is_delayed(NOW) is is_delayed


def test_between_olts_delayed_then_delay_then_priority() -> None:
    """S0-09, S0-22: the key is delayed first, then the larger delay, then the larger priority."""
    delayed = due_node(olt_id=1, late_seconds=301)
    late = due_node(olt_id=2, late_seconds=299, interval_seconds=3_600)
    important, ordinary = due_node(olt_id=3, priority=80), due_node(olt_id=4, priority=20)

    assert order_between_olts([ordinary, late, important, delayed], NOW) == [delayed, late, important, ordinary]


def test_a_node_listed_twice_starts_once() -> None:
    """S0-25."""
    node = due_node()

    plan = plan_tick([node, node], free_pollers=[0, 1], busy_olts=[], now=NOW)

    assert len(plan.start) == 1
    assert plan.waiting == ()


due_nodes = st.lists(
    st.builds(
        due_node,
        olt_id=st.integers(1, 6),
        late_seconds=st.integers(0, 5_000),
        interval_seconds=st.sampled_from([60, 300, 3_600]),
        priority=st.integers(0, 100),
        query_type=st.sampled_from(QueryType),
        is_run_now=st.booleans(),
    )
)


@given(due_nodes, st.sets(st.integers(0, 9)), st.sets(st.integers(1, 6)))
def test_no_plan_overlaps_overbooks_loses_or_doubles(nodes: list[DueNode], pollers: set[int], busy: set[int]) -> None:
    """S0-02, S0-13, S0-25: every node is in exactly one place, and no OLT or poller is used twice."""
    plan = plan_tick(nodes, free_pollers=sorted(pollers), busy_olts=busy, now=NOW)

    olts = [assignment.node.olt_id for assignment in plan.start]
    assert len(set(olts)) == len(olts)
    assert not busy & set(olts)
    used = [assignment.poller_id for assignment in plan.start]
    assert len(set(used)) == len(used)
    assert set(used) <= pollers
    places = [a.node.node_id for a in plan.start] + [node.node_id for node, _ in plan.waiting]
    assert sorted(places) == sorted(node.node_id for node in nodes)


@given(due_nodes, st.sets(st.integers(0, 9)))
def test_a_poller_stays_idle_only_when_no_olt_could_use_it(nodes: list[DueNode], pollers: set[int]) -> None:
    plan = plan_tick(nodes, free_pollers=sorted(pollers), busy_olts=[], now=NOW)

    assert len(plan.start) == min(len(pollers), len({node.olt_id for node in nodes}))
