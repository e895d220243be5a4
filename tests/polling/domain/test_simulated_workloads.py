"""What holds for every workload, over random ones in virtual time. A failure prints the workload that replays it."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from virtual_network import VirtualNetwork
from virtual_rows import Slice, VirtualNode
from virtual_strategies import anything, forward_jumps, no_jumps
from virtual_workload import START, Workload

from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import slot_at_or_before

pytestmark = pytest.mark.slow

thorough = settings(max_examples=25)


def play(workload: Workload) -> tuple[VirtualNetwork, list[Slice]]:
    network = VirtualNetwork(workload).play()
    return network, network.trace or []


def overlaps(slices: Iterable[Slice], end: datetime) -> list[tuple[Slice, Slice]]:
    ordered = sorted(slices, key=lambda s: s.began)
    return [(one, other) for one, other in pairwise(ordered) if (one.ended or end) > other.began]


@thorough
@given(anything())
def test_no_two_nodes_are_ever_on_one_olt(workload: Workload) -> None:
    """S0-02, S1-01, S4-15."""
    network, trace = play(workload)

    for olt in network.olts:
        assert overlaps((s for s in trace if s.node.olt is olt), network.real) == []


@thorough
@given(anything())
def test_no_poller_ever_runs_two_nodes(workload: Workload) -> None:
    """S0-11, S2-11: so never more run than there are pollers."""
    network, trace = play(workload)

    for poller_id in range(workload.pollers):
        assert overlaps((s for s in trace if s.poller_id == poller_id), network.real) == []
    assert {s.poller_id for s in trace} <= set(range(workload.pollers))


@thorough
@given(anything())
def test_a_slot_is_started_at_most_once(workload: Workload) -> None:
    """S4-13: under every outcome, with crashes, and when the clock goes back and the slot comes again."""
    _, trace = play(workload)

    starts = Counter((s.node.node_id, s.slot_at) for s in trace if s.is_fresh and s.slot_at)
    assert {start: times for start, times in starts.items() if times > 1} == {}


@thorough
@given(anything(jumps=forward_jumps))
def test_every_slot_has_its_run_or_is_counted_as_skipped(workload: Workload) -> None:
    """D2, D8: to the unit, on OLTs that cannot keep up, that are dead, while the engine is dead, over jumps."""
    network, _ = play(workload)

    for node in network.nodes:
        if not node.spec.is_fixed_delay:
            assert len(slots_before_next_run(node)) == node.slot_runs + node.slots_skipped


def slots_before_next_run(node: VirtualNode) -> list[datetime]:
    """List the slots that a node's schedule has behind it, one by one, as no rule of the domain does."""
    interval = timedelta(seconds=node.spec.interval_seconds)
    count = (node.next_run_at - node.first_run_at) / interval
    assert count == int(count)
    return [node.first_run_at + number * interval for number in range(int(count))]


@thorough
@given(anything())
def test_a_start_serves_the_latest_slot_and_no_older_one(workload: Workload) -> None:
    """S4-13: no catch-up, however late a node is and however long nobody polled."""
    _, trace = play(workload)

    for start in trace:
        if start.is_fresh and start.slot_at and not start.node.spec.is_fixed_delay:
            grid = start.node.spec
            assert start.slot_at == slot_at_or_before(
                start.wall, interval_seconds=grid.interval_seconds, offset_seconds=grid.offset_seconds
            )


@thorough
@given(anything(jumps=no_jumps))
def test_a_slot_that_came_during_a_run_of_its_node_is_not_made_up_for(workload: Workload) -> None:
    """D2, S0-28: the end of the run passes it."""
    network, _ = play(workload)

    for node in network.nodes:
        for run, start in pairwise(node.slices):
            if start.is_fresh and start.slot_at:
                assert run.ended is not None
                assert start.slot_at > run.ended


@thorough
@given(anything(jumps=no_jumps))
def test_nothing_starts_while_the_engine_is_dead_and_nothing_is_made_up_for_after(workload: Workload) -> None:
    network, trace = play(workload)

    for begin, end in workload.downtimes:
        crash, restart = START + timedelta(seconds=begin), START + timedelta(seconds=end)
        assert [s for s in trace if crash < s.began < restart] == []
        for node in network.nodes:
            fresh = [s.slot_at for s in node.slices if s.is_fresh and s.slot_at and s.began >= restart]
            assert len([slot for slot in fresh if slot <= restart]) <= 1


@settings(max_examples=20)
@given(anything())
def test_every_node_is_in_exactly_one_place_at_every_moment(workload: Workload) -> None:
    """S0-13, S0-25: idle, queued, running, waiting or suspended; none is lost, none doubled."""
    network = VirtualNetwork(workload)

    for _ in network.steps():
        queued = Counter(node.node_id for node, _ in network.queue)
        for node in network.nodes:
            places = where(network, node)
            assert len(places) == 1, (node.node_id, places, network.now)
            assert queued[node.node_id] == (network.is_up and places[0] in ("due", "ready")), (node.node_id, places)


def where(network: VirtualNetwork, node: VirtualNode) -> list[str]:
    """Name every place that a node is in, by its row and its executions; the due and the ready form the queue."""
    places = ["running" for run in network.busy.values() if run and run.node is node]
    if node.suspended:
        places.append("suspended")
    if node.run and node.run.state is ExecutionState.WAITING:
        is_ready = node.run_requested_at is not None or network.ready_at(node.run) <= network.now
        places.append("ready" if is_ready else "waiting")
    if not places:
        places.append("due" if node.is_due(network.now) else "idle")
    return places
