"""Who keeps every slot and who at least never starves, over random OLTs in virtual time; and the real workload."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from math import log
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from virtual_network import VirtualNetwork
from virtual_rows import Slice, VirtualNode
from virtual_strategies import HOURS, demand, feasible, longest_slice, olts
from virtual_workload import START, NodeSpec, OltSpec, Workload

from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.schedule import slot_at_or_before

pytestmark = pytest.mark.slow

END = START + timedelta(hours=HOURS)


def starts_of(node: VirtualNode) -> list[Slice]:
    return [s for s in node.slices if s.is_fresh]


@settings(max_examples=40)
@given(feasible())
def test_on_an_olt_that_can_keep_up_every_slot_gets_its_run(workload: Workload) -> None:
    """S4-14, S0-06: the longest slice of another run and all work of equal or higher rank fit into each interval."""
    network = VirtualNetwork(workload).play()

    for node in network.nodes:
        assert node.slots_skipped == 0
        interval = timedelta(seconds=node.spec.interval_seconds)
        due = [slot for slot in slots_of(node.spec) if slot + interval <= END]
        starts = {s.slot_at: s for s in starts_of(node)}
        assert [slot for slot in due if slot not in starts] == []
        worst = timedelta(seconds=demand(node.olt.spec, node.spec))
        assert all(starts[slot].began - slot <= worst for slot in due)


def slots_of(spec: NodeSpec) -> list[datetime]:
    slot = slot_at_or_before(START, interval_seconds=spec.interval_seconds, offset_seconds=spec.offset_seconds)
    count = HOURS * 3_600 // spec.interval_seconds
    return [slot + timedelta(seconds=number * spec.interval_seconds) for number in range(1, count + 1)]


crowded_nodes = st.builds(
    NodeSpec,
    interval_seconds=st.sampled_from((300, 420, 900)),
    seconds=st.integers(30, 300).map(float),
    offset_seconds=st.integers(0, 899),
    query_type=st.sampled_from(QueryType),
    priority=st.integers(0, 100),
    ports=st.sampled_from((1, 1, 8)),
    varies=st.sampled_from((0.0, 0.5)),
)


@settings(max_examples=30)
@given(olts(crowded_nodes), st.integers(0, 2**16))
def test_on_an_olt_that_cannot_keep_up_nothing_starves(olt: OltSpec, seed: int) -> None:
    """D11: whoever is late by most intervals goes first, so the wait of each node has a bound."""
    network = VirtualNetwork(Workload((olt,), pollers=1, hours=12, seed=seed)).play()

    event(f"skips slots: {any(node.slots_skipped for node in network.nodes)}")
    for node in network.nodes:
        assert longest_gap(network, node) <= node.spec.interval_seconds + longest_wait(olt.nodes, node.spec, 0)


brisk_nodes = st.builds(
    NodeSpec,
    interval_seconds=st.sampled_from((300, 420)),
    seconds=st.integers(20, 100).map(float),
    offset_seconds=st.integers(0, 419),
    query_type=st.sampled_from(QueryType),
    priority=st.integers(0, 100),
)


@settings(max_examples=15)
@given(st.lists(olts(brisk_nodes), min_size=2, max_size=4).map(tuple), st.integers(1, 2))
def test_with_too_few_pollers_nothing_starves_either(olts: tuple[OltSpec, ...], pollers: int) -> None:
    """S0-22: between OLTs the longest wait goes first, so each OLT has its turn."""
    network = VirtualNetwork(Workload(olts, pollers, hours=12)).play()

    event(f"skips slots: {any(node.slots_skipped for node in network.nodes)}")
    everyone = [spec for olt in olts for spec in olt.nodes]
    turn = sum(longest_slice(spec) for spec in everyone)
    for node in network.nodes:
        bound = longest_wait(node.olt.spec.nodes, node.spec, turn)
        assert longest_gap(network, node) <= node.spec.interval_seconds + bound


def longest_gap(network: VirtualNetwork, node: VirtualNode) -> float:
    """Return the longest time in which a node did nothing, in seconds."""
    times = [START, *(moment for s in node.slices for moment in (s.began, s.ended or network.real)), network.real]
    return max((after - before).total_seconds() for before, after in list(pairwise(times))[::2])


def longest_wait(nodes: tuple[NodeSpec, ...], node: NodeSpec, turn: float) -> float:
    """Bound the time from a node's due time to its start; `turn` is what each start may wait for a poller.

    Once the node is late by its interval, a rival only goes first if it is late by as many of its own. Between two
    such starts the rival has to become as late again, so they grow rarer, and the bound is where the sum stops.
    """
    rivals = [other for other in nodes if other is not node]
    own, wait = float(node.interval_seconds), 0.0
    while True:
        later = max(wait / own, 1.0)
        starts = [1 + log(later) / growth(rival, node) for rival in rivals]
        work = sum(n * (longest_slice(rival) + turn) for n, rival in zip(starts, rivals, strict=True))
        bound = own + max((longest_slice(rival) for rival in nodes), default=0.0) + turn + work
        if bound - wait < 1:
            return bound
        wait = bound


def growth(rival: NodeSpec, node: NodeSpec) -> float:
    """Return the logarithm of the factor by which the wait grows between two starts of a rival."""
    share = rival.interval_seconds / node.interval_seconds
    return -log(1 - share) if share < 1 else float("inf")


STATE = NodeSpec(300, 5, query_type=QueryType.GET)
DISCOVERY = NodeSpec(900, 10, query_type=QueryType.DISCOVERY)
OPTICS = NodeSpec(3_600, 491, query_type=QueryType.GET, ports=16)
REAL_WORKLOAD = (STATE, DISCOVERY, OPTICS)


def hours_of(starts: list[Slice]) -> Counter[datetime]:
    return Counter(s.slot_at.replace(minute=0, second=0) for s in starts if s.slot_at)


def test_a_week_of_the_real_workload_has_twelve_state_runs_in_every_hour() -> None:
    """S4-14: 5 s every 5 min, 10 s every 15 min, and an optical pass of 491 s every hour, on one OLT."""
    olt = OltSpec((STATE, DISCOVERY, OPTICS))
    network = VirtualNetwork(Workload((olt,), pollers=1, hours=7 * 24 + 1)).play()
    week = [START + timedelta(hours=number) for number in range(1, 7 * 24 + 1)]

    state, discovery, optics = network.nodes

    assert {hours_of(starts_of(state))[hour] for hour in week} == {12}
    assert {hours_of(starts_of(discovery))[hour] for hour in week} == {4}
    assert {hours_of(starts_of(optics))[hour] for hour in week} == {1}
    assert [node.slots_skipped for node in network.nodes] == [0, 0, 0]


def test_the_optical_pass_of_the_real_workload_gives_way_and_ends_within_its_hour() -> None:
    """D22: one execution and one slot, however many slices."""
    olt = OltSpec((STATE, DISCOVERY, OPTICS))
    network = VirtualNetwork(Workload((olt,), pollers=1, hours=7 * 24)).play()

    optics = network.nodes[2]

    ends = [s.ended for s in optics.slices if s.is_last]
    assert len(ends) == optics.slot_runs == 7 * 24 - 1
    for slot, ended in zip([s.slot_at for s in starts_of(optics)], ends, strict=True):
        assert slot is not None
        assert ended is not None
        assert ended - slot < timedelta(minutes=10)
    assert len(optics.slices) >= 2 * optics.slot_runs


@settings(max_examples=15)
@given(st.tuples(st.integers(0, 299), st.integers(0, 899), st.integers(0, 3_599)), st.sampled_from((8, 16, 64)))
def test_the_real_workload_keeps_its_slots_wherever_they_lie(offsets: tuple[int, int, int], ports: int) -> None:
    nodes = [
        NodeSpec(300, 5, offsets[0], QueryType.GET),
        NodeSpec(900, 10, offsets[1], QueryType.DISCOVERY),
        NodeSpec(3_600, 491, offsets[2], QueryType.GET, ports=ports),
    ]
    network = VirtualNetwork(Workload((OltSpec(tuple(nodes)),), pollers=1, hours=24)).play()

    assert [node.slots_skipped for node in network.nodes] == [0, 0, 0]
    # The last slot of the day may still wait for its turn when the day ends.
    for node, slots in zip(network.nodes, (288, 96, 24), strict=True):
        assert slots - 1 <= node.slot_runs <= slots


@pytest.mark.parametrize("seed", [1])
def test_hours_of_fifty_troubled_olts_account_for_every_slot(seed: int) -> None:
    """Sick and silent OLTs, too few pollers and an engine that dies: nothing starves, nothing is lost or doubled."""
    luck = Random(seed)  # noqa: S311 luck, not a secret
    silent = [(begin, begin + luck.randrange(60, 20_000)) for begin in luck.sample(range(20_000), 20)]
    nodes = [replace(node, failing=0.05, varies=0.5) for node in REAL_WORKLOAD]
    olts = tuple(
        OltSpec(
            tuple(replace(node, offset_seconds=luck.randrange(node.interval_seconds)) for node in nodes),
            silent=(silent[number],) if number < len(silent) else (),
        )
        for number in range(50)
    )

    network = VirtualNetwork(Workload(olts, pollers=10, hours=8, seed=seed, downtimes=((10_000, 12_000),))).play()

    for node in network.nodes:
        slots = (node.next_run_at - node.first_run_at) // timedelta(seconds=node.spec.interval_seconds)
        starts = [s.slot_at for s in starts_of(node)]
        assert slots == len(starts) + node.slots_skipped == len(set(starts)) + node.slots_skipped
        assert node.slots_skipped < slots


def test_a_day_of_fifty_olts_skips_no_slot() -> None:
    """The real workload everywhere, on twenty pollers: a month of it is the same and takes a minute or two."""
    olts = tuple(
        OltSpec(tuple(replace(node, offset_seconds=37 * number % node.interval_seconds) for node in REAL_WORKLOAD))
        for number in range(50)
    )

    network = VirtualNetwork(Workload(olts, pollers=20, hours=24)).play()

    assert sum(node.slots_skipped for node in network.nodes) == 0
    assert {
        hour: runs for node in network.nodes[::3] for hour, runs in hours_of(starts_of(node)).items() if runs > 12
    } == {}
    assert sum(node.slot_runs for node in network.nodes) >= 50 * 23 * (12 + 4 + 1)
