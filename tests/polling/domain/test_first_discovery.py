"""Discovery before GET, also on the first day: who waits, who owes, and when the first discovery is over."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.planning import (
    DiscoveryNode,
    DueNode,
    FirstDiscovery,
    NodeQueue,
    WaitReason,
    is_discovery_over,
    judge_first_discovery,
    must_wait_for_discovery,
    owes_slots,
    plan_tick,
)
from factories import NOW, due_node

stands = st.sampled_from(FirstDiscovery)
discoveries = st.lists(st.builds(DiscoveryNode, st.booleans(), st.booleans()), max_size=4)


@given(discoveries)
def test_a_discovered_olt_makes_nobody_wait(nodes: list[DiscoveryNode]) -> None:
    first = judge_first_discovery(is_discovered=True, nodes=nodes)

    assert not must_wait_for_discovery(first, reads_onus=True)
    assert owes_slots(first, reads_onus=True)


@given(discoveries)
def test_a_first_discovery_is_coming_exactly_when_one_of_them_may_run(nodes: list[DiscoveryNode]) -> None:
    first = judge_first_discovery(is_discovered=False, nodes=nodes)

    may_run = any(node.is_enabled and not node.is_suspended for node in nodes)
    assert (first is FirstDiscovery.COMING) == may_run
    assert (first is FirstDiscovery.MISSING) == (not nodes)
    assert (first is FirstDiscovery.SUSPENDED) == (not may_run and any(node.is_enabled for node in nodes))


@given(stands, st.booleans())
def test_only_reads_of_onus_wait_and_only_a_coming_discovery_excuses_them(
    first: FirstDiscovery, reads_onus: bool
) -> None:
    """What neither waits nor is excused is owed: no OLT is green because nothing is asked of it."""
    assert must_wait_for_discovery(first, reads_onus=reads_onus) == (reads_onus and first is not FirstDiscovery.DONE)
    assert owes_slots(first, reads_onus=reads_onus) or first is FirstDiscovery.COMING
    assert owes_slots(first, reads_onus=False)


@given(st.booleans(), st.booleans(), st.booleans())
def test_a_first_discovery_is_over_when_complete_or_given_up_with_onus(
    is_complete: bool, is_given_up: bool, found_any: bool
) -> None:
    over = is_discovery_over(is_complete=is_complete, is_given_up=is_given_up, found_any=found_any)

    assert over == (is_complete or (is_given_up and found_any))


due_nodes = st.lists(
    st.builds(
        lambda olt, late, query_type, asked, waits: replace(
            due_node(olt_id=olt, late_seconds=late, query_type=query_type, is_run_now=asked), waits_for_discovery=waits
        ),
        st.integers(1, 4),
        st.integers(0, 4_000),
        st.sampled_from(QueryType),
        st.booleans(),
        st.booleans(),
    ),
    max_size=12,
)


@given(due_nodes, st.integers(0, 5), st.sets(st.integers(1, 4)))
def test_who_waits_for_a_discovery_never_starts_and_is_in_nobodys_way(
    nodes: list[DueNode], pollers: int, busy: set[int]
) -> None:
    """However late, and also when a person asked for it."""
    plan = plan_tick(nodes, free_pollers=range(pollers), busy_olts=busy, now=NOW)
    others = plan_tick(
        [node for node in nodes if not node.waits_for_discovery], free_pollers=range(pollers), busy_olts=busy, now=NOW
    )

    assert plan.start == others.start
    held = [(node, reason) for node, reason in plan.waiting if node.waits_for_discovery]
    assert {reason for _, reason in held} <= {WaitReason.FIRST_DISCOVERY}
    assert len(held) == sum(node.waits_for_discovery for node in nodes)


def test_who_waits_for_a_discovery_is_not_late_and_needs_no_more_pollers() -> None:
    late = replace(due_node(late_seconds=4_000), waits_for_discovery=True)

    assert late.delay(NOW) == timedelta(0)
    assert not NodeQueue([late]).is_overload(now=NOW)
