"""Dead OLTs, clocks that jump, hours that end and people who ask, over random networks in virtual time."""

from dataclasses import replace
from datetime import datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_network import POLICY, VirtualNetwork
from virtual_rows import VirtualNode
from virtual_strategies import (
    HOURS,
    anything,
    demand,
    feasible,
    feasible_olts,
    no_jumps,
    olts,
    sickly_nodes,
    spans,
    steady_nodes,
)
from virtual_workload import START, NodeSpec, OltSpec, Workload

from facho.polling.domain.retry import PROBE_PAUSES_SECONDS
from facho.polling.domain.schedule import Window

pytestmark = pytest.mark.slow


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@settings(max_examples=40)
@given(olts(sickly_nodes, silent=True), st.integers(0, 2**16))
def test_a_dead_olt_costs_the_attempts_of_one_node(olt: OltSpec, seed: int) -> None:
    """D8, S3-16: however many nodes it has; one finds out for all, and the others burn none."""
    network = VirtualNetwork(Workload((olt,), pollers=1, hours=HOURS, seed=seed)).play()

    for begin, end in olt.silent:
        in_vain = [s for s in network.trace or [] if s.was_silent and at(begin) <= s.began < at(end)]
        assert len(in_vain) <= POLICY.max_attempts


@settings(max_examples=40)
@given(feasible_olts, spans(longest=3_000), st.integers(0, 2**16))
def test_only_the_node_that_met_the_silence_asks_again(olt: OltSpec, silent: tuple, seed: int) -> None:
    """D8: on an OLT whose nodes were all well, the others do not even start."""
    network = VirtualNetwork(Workload((replace(olt, silent=silent),), pollers=1, hours=HOURS, seed=seed)).play()

    for begin, end in silent:
        in_vain = [s for s in network.trace or [] if s.was_silent and at(begin) <= s.began < at(end)]
        assert len({s.node.node_id for s in in_vain}) <= 1


@settings(max_examples=25)
@given(feasible_olts, st.integers(1, 5_000), st.integers(60, 5_000))
def test_an_olt_that_is_back_is_polled_again_after_a_probe(olt: OltSpec, begin: int, length: int) -> None:
    """D8: never more than five minutes to the probe, then each node at its next slot."""
    silent = replace(olt, silent=((begin, begin + length),))
    network = VirtualNetwork(Workload((silent,), pollers=1, hours=HOURS)).play()

    back = at(begin + length)
    for node in network.nodes:
        first = next(s for s in node.slices if s.began >= back)
        worst = max(PROBE_PAUSES_SECONDS) + 60 + node.spec.interval_seconds + demand(olt, node.spec)
        assert first.began - back <= timedelta(seconds=worst)


@settings(max_examples=25)
@given(feasible(), olts(sickly_nodes, silent=True))
def test_a_sick_olt_costs_a_healthy_one_no_slot(workload: Workload, sick: OltSpec) -> None:
    mixed = replace(workload, olts=(*workload.olts, sick), pollers=workload.pollers + 1)

    network = VirtualNetwork(mixed).play()

    assert [node.slots_skipped for olt in network.olts[:-1] for node in olt.nodes if node.slots_skipped] == []


hour_jumps = st.tuples(st.integers(3_700, HOURS * 3_600 - 4_000), st.sampled_from((3_600, -3_600))).map(lambda j: (j,))


@settings(max_examples=40)
@given(feasible(jumps=hour_jumps))
def test_a_jump_of_the_clock_makes_no_burst(workload: Workload) -> None:
    """D7: in the second after it, at most as many start as there are pollers, and only whose slot it is."""
    [(second, _)] = workload.jumps
    network = VirtualNetwork(workload).play()

    burst = [s for s in network.trace or [] if at(second) <= s.began < at(second + 1) and s.is_fresh]

    assert len(burst) <= workload.pollers
    for start in burst:
        interval, offset = start.node.spec.interval_seconds, start.node.spec.offset_seconds
        since_slot = (start.wall.timestamp() - offset) % interval
        assert since_slot <= 1


@settings(max_examples=40)
@given(feasible(jumps=hour_jumps))
def test_a_jump_of_the_clock_stalls_no_node_for_longer_than_its_interval(workload: Workload) -> None:
    """D7: forward or back, the next slot of each node is at most one interval away, and it runs."""
    [(second, _)] = workload.jumps
    network = VirtualNetwork(workload).play()

    for node in network.nodes:
        worst = timedelta(seconds=node.spec.interval_seconds + demand(node.olt.spec, node.spec))
        since = [s for s in node.slices if s.began >= at(second)]
        assert since[0].began <= at(second) + worst
        assert [one for one, other in pairwise(since) if one.ended is None or other.began - one.ended > worst] == []


@pytest.mark.parametrize("jump", [3_600, -3_600])
def test_a_long_read_that_gave_way_goes_on_although_the_clock_jumps(jump: int) -> None:
    olt = OltSpec((NodeSpec(300, 5), NodeSpec(1_800, 491, ports=16)))
    calm = VirtualNetwork(Workload((olt,), pollers=1, hours=3)).play()
    gave_way = next(s.ended for s in calm.nodes[1].slices if s.ended and not s.is_last and s.ended > at(3_700))
    second = int((gave_way - START).total_seconds()) + 1

    network = VirtualNetwork(Workload((olt,), pollers=1, hours=3, jumps=((second, jump),))).play()

    after = next(s for s in network.nodes[1].slices if s.began >= at(second))
    assert not after.is_fresh
    assert after.began - at(second) < timedelta(minutes=1)


night_nodes = st.builds(
    replace,
    steady_nodes,
    window=st.builds(
        Window,
        st.sampled_from((time(22), time(0, 30), time(2))),
        st.sampled_from((time(1), time(2, 10))),
        st.sampled_from((ZoneInfo("UTC"), ZoneInfo("America/Bogota"))),
    ),
)


def meets_its_hours(node: VirtualNode) -> bool:
    """Tell whether a slot of the node ever falls into its hours; otherwise it runs all the same, rather than never."""
    return node.spec.window is not None and node.spec.window.contains(node.first_run_at)


@settings(max_examples=25)
@given(anything(nodes=night_nodes, jumps=no_jumps))
def test_no_run_starts_outside_of_its_hours_unless_a_person_asked(workload: Workload) -> None:
    network = VirtualNetwork(replace(workload, hours=30)).play()

    for start in network.trace or []:
        window = start.node.spec.window
        if start.is_fresh and start.slot_at and window and meets_its_hours(start.node):
            assert window.contains(start.wall)
            assert window.contains(start.slot_at)


@settings(max_examples=25)
@given(anything(nodes=night_nodes, jumps=no_jumps))
def test_slots_outside_of_the_hours_are_neither_run_nor_skipped(workload: Workload) -> None:
    network = VirtualNetwork(replace(workload, hours=30)).play()

    for node in filter(meets_its_hours, network.nodes):
        interval = timedelta(seconds=node.spec.interval_seconds)
        count = (node.next_run_at - node.first_run_at) // interval
        slots = [node.first_run_at + number * interval for number in range(count)]
        owed = [slot for slot in slots if node.spec.window and node.spec.window.contains(slot)]
        assert len(owed) == node.slot_runs + node.slots_skipped


@settings(max_examples=25)
@given(feasible(), st.lists(st.tuples(st.integers(1, 7_000), st.integers(0, 11)), min_size=1, max_size=3))
def test_a_run_asked_for_comes_next_and_moves_no_slot(workload: Workload, wishes: list[tuple[int, int]]) -> None:
    """S0-35: it waits for what runs and for other wishes, nothing else; the grid stays."""
    network = VirtualNetwork(replace(workload, wishes=tuple(wishes))).play()

    for second, number in wishes:
        node = network.nodes[number % len(network.nodes)]
        patience = sum(other.spec.seconds for other in node.olt.nodes) * (len(wishes) + 2)
        assert [s for s in node.slices if at(second) <= s.began <= at(second + patience)]
    for node in network.nodes:
        off_grid = [slot.timestamp() - node.spec.offset_seconds for slot in served(node)]
        assert not [seconds for seconds in off_grid if seconds % node.spec.interval_seconds]


def served(node: VirtualNode) -> list[datetime]:
    return [s.slot_at for s in node.slices if s.slot_at]
